#include "softbody/worker.h"

#include "softbody/task.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* A step is a pure function: if the right to act is over before it ends, its output is refused, and
 * nothing else came of it. So baton_work_may_act() is not asked. */
static void *compute(void *argument)
{
    struct baton_work_run *run = argument;
    struct baton_error error;
    struct buffer output;
    int code;

    buffer_init(&output, BATCH_BYTES_MAX);
    code = task_run(run->body, run->bytes, &output, &error);
    if (code != 0) {
        (void)fprintf(stderr, "%s: %s\n", run->id, error.message);
    }
    if (baton_work_ended(run, code == 0, code, output.data, output.bytes, &error) != 0) {
        (void)fprintf(stderr, "a result is lost: %s\n", error.message);
    }
    buffer_fini(&output);
    return NULL;
}

/* The id is that of the round's submission, with ".B" behind it. */
static void on_start(struct baton_work *work, struct baton_work_run *run, void *userdata)
{
    const char *batch = strrchr(run->id, '.');
    pthread_t thread;
    (void)work;

    (void)printf("batch %s on %s attempt %u\n", batch ? batch + 1 : "?", (const char *)userdata,
                 run->attempt);
    if (pthread_create(&thread, NULL, compute, run) == 0) {
        (void)pthread_detach(thread);
    } else {
        (void)baton_work_ended(run, false, BATON_EIO, NULL, 0, NULL);
    }
}

static void on_event(struct baton_work *work, const struct baton_work_event *event, void *userdata)
{
    (void)work;

    if (event->type == BATON_WORK_EVENT_ERROR) {
        (void)fprintf(stderr, "%s: %s\n", (const char *)userdata, event->error.message);
    }
}

int worker_open(struct baton_work **ret, struct baton *baton, const char *pool, const char *name,
                struct baton_error *reterr)
{
    struct baton_work_options options = {
        .size = sizeof(options),
        .worker = name,
        .slots = WORKER_SLOTS,
        .report_interval_ms = 200,
        .keep_ms = 20000, /* a master reads the results of its own round only */
        .on_start = on_start,
        .on_event = on_event,
        .userdata = (void *)name,
    };

    return baton_work_open(ret, baton, pool, &options, reterr);
}

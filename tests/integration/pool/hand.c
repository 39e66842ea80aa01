/* usage: pool-hand URL NAME FILE JOBS MS
 *
 * A process of the pool "hands": a candidate, a worker, and a client, until it is killed. It
 * submits JOBS jobs of MS milliseconds and two services, which all hands submit by the same name,
 * so once; and it waits until the jobs have ended. It appends lines to FILE:
 *
 *   start ID EPOCH PID       act ID EPOCH PID       end ID EPOCH PID       finished JOBS PID
 *
 * A copy acts every few milliseconds, while the worker's lease holds. Each line is one append, so
 * their order is that in which the copies of all processes acted.
 */
#include "pool/pool.h"
#include "pool/submit.h"
#include "pool/wait.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ACT_MS = 5, RETRY_MS = 100, RUNNING_MAX = 64, LINE_MAX_BYTES = 256 };

struct running {
    bool is_there, is_service;
    uint64_t epoch;
    instant end;
    char id[WORK_ID_MAX];
};

static uv_loop_t loop;
static uv_timer_t act, again;
static struct member *member;
static struct pool *pool;
static struct pool_wait *wait_for_all;
static struct running running[RUNNING_MAX];
static int file, jobs, job_ms, completed;

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    va_list list;
    int bytes;

    va_start(list, format);
    bytes = vsnprintf(line, sizeof(line), format, list);
    va_end(list);
    if (write(file, line, (size_t)bytes) != bytes) {
        abort();
    }
}

static void note(const char *what, const struct running *one)
{
    say("%s %s %llu %d\n", what, one->id, (unsigned long long)one->epoch, (int)getpid());
}

/* ---- The worker -------------------------------------------------------------------------------
 */

static void on_start(void *userdata, const struct pool_start *start)
{
    struct running *one = running;

    while (one->is_there) {
        one++;
    }
    *one = (struct running){.is_there = true,
                            .is_service = start->item->kind == WORK_SERVICE,
                            .epoch = start->epoch,
                            .end = instant_add(clock_now(), SPAN_MS(job_ms))};
    memcpy(one->id, start->item->id, strlen(start->item->id) + 1);
    note("start", one);
}

static void end(struct running *one, bool is_success)
{
    struct running ended = *one;
    const struct work_result result = {
        .id = ended.id, .epoch = ended.epoch, .is_success = is_success};

    one->is_there = false;
    (void)pool_ended(pool, &result);
}

static void on_halt(void *userdata, const char *id, uint64_t epoch, instant deadline)
{
    for (struct running *one = running; one < running + RUNNING_MAX; one++) {
        if (one->is_there && one->epoch == epoch && strcmp(one->id, id) == 0) {
            end(one, false);
            return;
        }
    }
}

static void on_act(uv_timer_t *timer)
{
    for (struct running *one = running; one < running + RUNNING_MAX; one++) {
        bool is_due = one->is_there && !one->is_service && instant_before(one->end, clock_now());

        if (!one->is_there || !pool_may_act(pool, NULL)) {
            continue;
        }
        note(is_due ? "end" : "act", one);
        if (is_due) {
            end(one, true);
        }
    }
}

/* ---- The client -------------------------------------------------------------------------------
 */

static void on_end(void *userdata, const struct pool_end *ended)
{
    completed += ended->state == WORK_COMPLETED;
    if (pool_wait_left(wait_for_all) == 0) {
        say("finished %d %d\n", completed, (int)getpid());
    }
}

static void submit(uv_timer_t *timer);

static void try_again(void)
{
    (void)uv_timer_start(&again, submit, RETRY_MS, 0);
}

static void on_submitted(void *userdata, int code, const struct pool_submission *submission,
                         const struct baton_error *error)
{
    if (code != BATON_OK || pool_wait_begin(&wait_for_all, member, "hands", submission->ids + 2,
                                            (size_t)jobs, on_end, NULL, NULL) != BATON_OK) {
        try_again();
    }
}

static void submit(uv_timer_t *timer)
{
    json_t *items = json_array();

    for (int i = 0; i < jobs + 2; i++) {
        (void)json_array_append_new(items, json_pack("{s:s}", "kind", i < 2 ? "service" : "job"));
    }
    if (pool_submit(member, "hands", "all", items, on_submitted, NULL, NULL) != BATON_OK) {
        try_again();
    }
    json_decref(items);
}

/* ---- The whole --------------------------------------------------------------------------------
 */

static void fail(const struct baton_error *error)
{
    (void)fprintf(stderr, "pool-hand: %s\n", error->message);
    exit(EXIT_FAILURE);
}

static void open_pool(const char *name)
{
    struct pool_config config = {.name = "hands",
                                 .may_lead = true,
                                 .worker = name,
                                 .worker_options = {.slots = 4, .report_interval = SPAN_MS(50)},
                                 .leader_options = pool_leader_options(),
                                 .calls = {.on_start = on_start, .on_halt = on_halt}};
    struct baton_error error;

    config.leader_options.report_interval = SPAN_MS(50);
    config.leader_options.silence = SPAN_MS(500);
    config.leader_options.rebalance_every = SPAN_MS(500);
    if (pool_open(&pool, member, &config, &error) != BATON_OK) {
        fail(&error);
    }
}

int main(int count, char **arguments)
{
    struct provider_config config = {.loop = &loop};
    struct baton_error error;

    if (count != 6) {
        return 64;
    }
    config.url = arguments[1];
    config.node = arguments[2];
    file = open(arguments[3], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    jobs = atoi(arguments[4]);
    job_ms = atoi(arguments[5]);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)uv_loop_init(&loop);
    (void)uv_timer_init(&loop, &act);
    (void)uv_timer_init(&loop, &again);
    if (member_open(&member, &config, &error) != BATON_OK) {
        fail(&error);
    }
    open_pool(arguments[2]);
    (void)uv_timer_start(&act, on_act, ACT_MS, ACT_MS);
    submit(&again);
    return uv_run(&loop, UV_RUN_DEFAULT);
}

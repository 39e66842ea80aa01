/* One process of a spread run. It computes batches for the pool, and is the master while it leads.
 *
 *   example_softbody_spread URL NAME SCENE FRAMES BATCHES FRAMES_A_ROUND
 *
 * The processes of a run have one URL but for its node, and the same numbers; NAME is this one's.
 * It prints what it does, a line each ("master NAME EPOCH", "batch B on NAME attempt N", "frame
 * F"), and once the frames are reached "done HASH". It ends by SIGTERM. run.py starts five of them.
 */
#include "base/value.h"
#include "softbody/master.h"
#include "softbody/scene.h"
#include "softbody/worker.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { FRAMES_MAX = 1000000, PATIENCE_MS = 250, RETRY_MS = 50, LEAVE_MS = 1000 };

static atomic_bool ends;

static void on_signal(int number)
{
    (void)number;
    ends = true;
}

/* False: not done yet. An error is one of the moment: the next try begins with what is stored. */
static bool lead(const struct master *master, const char *name, uint64_t *announced)
{
    uint64_t epoch = baton_epoch(master->election), hash;
    struct baton_error error;
    bool is_done;

    if (epoch != *announced) {
        (void)printf("master %s %" PRIu64 "\n", name, epoch);
        *announced = epoch;
    }
    is_done = master_play(master, &hash, &error) == 0;
    if (is_done) {
        (void)printf("done %016" PRIx64 "\n", hash);
    } else if (!ends) {
        (void)fprintf(stderr, "%s: %s\n", name, error.message);
        (void)poll(NULL, 0, RETRY_MS);
    }
    return is_done;
}

/* When all is done it stays, since the others need its vote. */
static void serve(const struct master *master, const char *name)
{
    uint64_t announced = 0;
    bool is_done = false;

    while (!ends) {
        if (is_done) {
            (void)poll(NULL, 0, PATIENCE_MS);
        } else if (baton_wait_leadership(master->election, PATIENCE_MS, NULL) == 0) {
            is_done = lead(master, name, &announced);
        }
    }
}

static int run(struct master *master, const char *url, const char *name, struct baton_error *reterr)
{
    const struct baton_log log = {.size = sizeof(log), .fd = 2, .level = BATON_LOG_WARNING};
    const struct baton_options options = {.size = sizeof(options), .node = name, .log = &log};
    struct baton_work *work = NULL;
    int code = baton_open(&master->baton, url, &options, reterr);

    code = code ? code : worker_open(&work, master->baton, master->pool, name, reterr);
    code = code ? code : baton_campaign(&master->election, master->baton, "softbody", NULL, reterr);
    if (code == 0) {
        serve(master, name);
    }
    if (work) { /* no thread uses a run any more when it returns */
        (void)baton_work_leave(work, LEAVE_MS, NULL);
        (void)baton_work_close(work, NULL);
    }
    baton_close(master->baton);
    return code;
}

static int numbers(struct master *ret, char **words, struct baton_error *reterr)
{
    int64_t scene = 0, frames = 0, batches = 0, frames_a_round = 0;
    int code = value_number(words[0], 0, UINT32_MAX, &scene, reterr);

    code = code ? code : value_number(words[1], 0, FRAMES_MAX, &frames, reterr);
    code = code ? code : value_number(words[2], 1, SCENE_BODIES, &batches, reterr);
    code = code ? code : value_number(words[3], 1, STEP_FRAMES_MAX, &frames_a_round, reterr);
    ret->scene = (uint32_t)scene;
    ret->frames = (uint64_t)frames;
    ret->batches = (uint32_t)batches;
    ret->frames_a_round = (uint32_t)frames_a_round;
    return code;
}

int main(int argc, char **argv)
{
    struct master master = {.pool = "softbody", .ends = &ends};
    struct baton_error error;
    int code;

    if (argc != 7) {
        (void)fprintf(stderr, "usage: %s URL NAME SCENE FRAMES BATCHES FRAMES_A_ROUND\n", argv[0]);
        return 2;
    }
    (void)signal(SIGTERM, on_signal);
    (void)signal(SIGINT, on_signal);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    code = numbers(&master, argv + 3, &error);
    code = code ? code : run(&master, argv[1], argv[2], &error);
    if (code != 0) {
        (void)fprintf(stderr, "%s: %s\n", argv[2], error.message);
    }
    return code == 0 ? 0 : 1;
}

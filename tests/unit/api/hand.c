#include "hand.h"

#include "lib/process.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static int memories; /* so far: each has a memory of its own */

int next_memory(void **state)
{
    memories++;
    return 0;
}

struct baton *open_node(const char *node)
{
    struct baton_options options = {.size = sizeof(options), .node = node};
    struct baton *baton = NULL;
    char url[32];

    (void)snprintf(url, sizeof(url), "memory:work-%d", memories);
    ASSERT_OK(baton_open(&baton, url, &options, failure));
    return baton;
}

void end_run(struct hand *hand, struct baton_work_run *run, bool is_success)
{
    char output[64];
    int bytes = snprintf(output, sizeof(output), "done %s", (const char *)run->body);

    ASSERT_OK(baton_work_ended(run, is_success, 3, output, (size_t)bytes, failure));
    hand->ended++;
}

static atomic_int toilers; /* threads */

/* On a thread of the run's own, until it is halted. */
static void *toil(void *run)
{
    struct baton_work_run *own = run;

    while (!baton_work_is_halted(own)) {
        pause_a_moment();
    }
    end_run(own->own, own, false);
    toilers--;
    return NULL;
}

static void begin_toil(struct baton_work_run *run)
{
    pthread_t thread;

    toilers++;
    assert_int_equal(pthread_create(&thread, NULL, toil, run), 0);
    assert_int_equal(pthread_detach(thread), 0);
}

static void on_start(struct baton_work *work, struct baton_work_run *run, void *userdata)
{
    struct hand *hand = userdata;

    assert_true(baton_work_may_act(run, NULL));
    assert_false(baton_work_is_halted(run));
    (void)snprintf(hand->checkpoint, sizeof(hand->checkpoint), "%s",
                   run->checkpoint ? (const char *)run->checkpoint : "");
    run->own = hand;
    hand->latest = run;
    hand->started++;
    if (strncmp(run->body, "quick", 5) == 0) {
        end_run(hand, run, true);
    } else if (strcmp(run->body, "toil") == 0) {
        begin_toil(run);
    } /* "wait": the test ends it */
}

static void on_halt(struct baton_work *work, struct baton_work_run *run, int64_t left_ns,
                    void *userdata)
{
    struct hand *hand = userdata;

    assert_true(left_ns >= 0);
    assert_true(baton_work_is_halted(run));
    assert_ptr_equal(run->own, hand);
    hand->halted++;
}

static void on_event(struct baton_work *work, const struct baton_work_event *event, void *userdata)
{
    struct hand *hand = userdata;

    hand->ready |= event->type == BATON_WORK_EVENT_READY;
}

struct baton_work_options options_of(struct hand *hand, const char *worker)
{
    return (struct baton_work_options){.size = sizeof(struct baton_work_options),
                                       .worker = worker,
                                       .slots = 4,
                                       .report_interval_ms = 50,
                                       .worker_lease_ms = 500,
                                       .rebalance_every_ms = -1,
                                       .on_start = on_start,
                                       .on_halt = on_halt,
                                       .on_event = on_event,
                                       .userdata = hand};
}

void begin(struct hand *hand, const char *node, const char *worker)
{
    struct baton_work_options options = options_of(hand, worker);

    *hand = (struct hand){.baton = open_node(node)};
    ASSERT_OK(baton_work_open(&hand->work, hand->baton, "pool", &options, failure));
}

void end(struct hand *hand)
{
    for (int i = 0; toilers > 0; i++) {
        assert_true(i < PATIENCE_MS);
        pause_a_moment();
    }
    baton_close(hand->baton);
}

struct baton_work_submission *submit(struct baton *baton, const char *items)
{
    struct baton_work_submission *given = NULL;

    ASSERT_OK(baton_work_submit(baton, "pool", NULL, items, &given, failure));
    return given;
}

void submit_as(struct baton *baton, const char *name, const char *items)
{
    ASSERT_OK(baton_work_submit(baton, "pool", name, items, NULL, failure));
}

enum baton_work_end await_end(struct baton *baton, const char *id)
{
    struct baton_work_result *result = NULL;
    enum baton_work_end how;

    ASSERT_OK(baton_work_wait(baton, "pool", &id, 1, PATIENCE_MS, &result, failure));
    how = result->end;
    baton_work_results_free(result, 1);
    return how;
}

/* Work that the group's members share, by <baton/work.h>: a pool needs no more of a provider than
 * elections, keys and channels. */
#include "provider/conformance.h"

#include <baton/work.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { JOBS = 30 };

struct hand {
    struct baton_work *work;
    _Atomic(struct baton_work_run *) service; /* that runs here */
    char checkpoint[16];                      /* that it was given */
    atomic_int sessions, halts;               /* that its worker had */
    atomic_bool hangs;                        /* on_halt does not end it */
};

static struct hand hands[GROUP_NODES];
static atomic_int ran[JOBS];

/* A body is the number of a job, or "service". */
static void on_start(struct baton_work *work, struct baton_work_run *run, void *userdata)
{
    struct hand *hand = userdata;
    int job;

    assert_true(baton_work_may_act(run, NULL));
    if (run->is_service) {
        (void)snprintf(hand->checkpoint, sizeof(hand->checkpoint), "%s",
                       run->checkpoint ? (const char *)run->checkpoint : "");
        hand->service = run;
    } else if (sscanf(run->body, "%d", &job) == 1) {
        ran[job]++;
        ASSERT_OK(baton_work_ended(run, true, job, run->body, run->bytes, failure));
    }
}

static void on_halt(struct baton_work *work, struct baton_work_run *run, int64_t left_ns,
                    void *userdata)
{
    struct hand *hand = userdata;

    hand->halts++;
    if (hand->service == run && !hand->hangs) {
        hand->service = NULL;
        ASSERT_OK(baton_work_ended(run, true, 0, NULL, 0, failure));
    }
}

static void on_event(struct baton_work *work, const struct baton_work_event *event, void *userdata)
{
    struct hand *hand = userdata;

    hand->sessions += event->type == BATON_WORK_EVENT_SESSION;
}

/* A server may not be reached yet; to submit the same by the same name is to submit it once. */
static struct baton_work_submission *submit(struct baton *baton, const char *name,
                                            const char *items)
{
    struct baton_work_submission *given = NULL;

    GROUP_AWAIT(baton_work_submit(baton, "pool", name, items, &given, NULL) == BATON_OK);
    return given;
}

static void submit_service(struct baton *baton)
{
    baton_work_submission_free(
        submit(baton, "services", "{\"id\":\"x\",\"kind\":\"service\",\"body\":\"service\"}"));
}

static void work_on_all(struct group *group)
{
    if (!tested->has_many_elections) {
        skip();
    }
    for (int i = 0; i < GROUP_NODES; i++) {
        struct baton_work_options options = {.size = sizeof(options),
                                             .slots = 8,
                                             .report_interval_ms = 100,
                                             .worker_lease_ms = 3000,
                                             .on_start = on_start,
                                             .on_halt = on_halt,
                                             .on_event = on_event,
                                             .userdata = &hands[i]};

        hands[i] = (struct hand){0};
        group_open(group, i, false, false);
        options.worker = group->members[i].node;
        ASSERT_OK(
            baton_work_open(&hands[i].work, group->members[i].baton, "pool", &options, failure));
    }
}

static void jobs_of_a_pool_run_once_and_their_results_are_kept(void **state)
{
    struct group *group = *state;
    struct baton *baton;
    struct baton_work_submission *given;
    struct baton_work_result *results = NULL, *one = NULL;
    char items[JOBS * 20];
    size_t at = 0;

    work_on_all(group);
    baton = group->members[1].baton;
    for (int i = 0; i < JOBS; i++) {
        ran[i] = 0;
        at += (size_t)snprintf(items + at, sizeof(items) - at, "%c{\"body\":\"%d\"}",
                               i == 0 ? '[' : ',', i);
    }
    (void)snprintf(items + at, sizeof(items) - at, "]");
    given = submit(baton, "jobs", items);
    ASSERT_OK(baton_work_wait(baton, "pool", (const char *const *)given->ids, JOBS, PATIENCE_MS,
                              &results, failure));
    for (int i = 0; i < JOBS; i++) {
        assert_int_equal(ran[i], 1);
        assert_int_equal(results[i].end, BATON_WORK_COMPLETED);
        assert_int_equal(results[i].code, i);
    }
    ASSERT_OK(baton_work_result(group->members[2].baton, "pool", given->ids[7], &one, failure));
    assert_string_equal(one->output, "7");
    baton_work_results_free(one, 1);
    baton_work_results_free(results, JOBS);
    baton_work_submission_free(given);
}

static int who_serves(int but)
{
    for (int i = 0; i < GROUP_NODES; i++) {
        if (i != but && hands[i].service) {
            return i;
        }
    }
    return -1;
}

/* The first one may lead the pool, too. */
static void a_service_goes_on_elsewhere_when_its_process_ends(void **state)
{
    struct group *group = *state;
    int first, second;
    uint64_t epoch;

    work_on_all(group);
    submit_service(group->members[0].baton);
    GROUP_AWAIT((first = who_serves(-1)) >= 0);
    epoch = hands[first].service->epoch;
    ASSERT_OK(baton_work_checkpoint(hands[first].service, "so far", 6, failure));
    group_close(group, first);
    GROUP_AWAIT((second = who_serves(first)) >= 0);
    assert_true(hands[second].service->epoch > epoch);
    assert_string_equal(hands[second].checkpoint, "so far");
    ASSERT_OK(baton_work_cancel(group->members[second].baton, "pool", "x", failure));
    GROUP_AWAIT(!hands[second].service);
}

static atomic_int is_open, is_entered; /* a gate, at which the loop's thread waits */

static void wait_at_gate(struct baton *baton, const char *channel, const void *data, size_t bytes,
                         void *userdata)
{
    is_entered = 1;
    GROUP_AWAIT(is_open);
}

/* Nobody can tell it then: it has to see that by itself. And a later session of its worker is none
 * of its own. */
static void a_run_may_not_act_after_its_lease_though_the_loop_stands_still(void **state)
{
    struct group *group = *state;
    struct baton_work_run *run;
    int number;

    if (strcmp(tested->name, "memory") == 0) {
        skip(); /* its leases do not end */
    }
    work_on_all(group);
    submit_service(group->members[0].baton);
    GROUP_AWAIT((number = who_serves(-1)) >= 0);
    run = hands[number].service;
    is_open = is_entered = 0;
    ASSERT_OK(
        baton_subscribe(NULL, group->members[number].baton, "gate", wait_at_gate, NULL, failure));
    GROUP_AWAIT(baton_publish(group->members[(number + 1) % GROUP_NODES].baton, "gate", "", 0,
                              NULL) == BATON_OK &&
                (group_pause(), is_entered));
    GROUP_AWAIT(!baton_work_may_act(run, NULL));
    assert_true(baton_work_is_halted(run));
    hands[number].hangs = true;
    is_open = 1;
    GROUP_AWAIT(hands[number].sessions > 1);
    GROUP_AWAIT(hands[number].halts > 0);
    for (int i = 0; i < 100; i++) {
        assert_false(baton_work_may_act(run, NULL));
        group_pause();
    }
    hands[number].service = NULL;
    (void)baton_work_ended(run, true, 0, NULL, 0, NULL);
    GROUP_AWAIT(who_serves(-1) >= 0);
}

static void *store_late(void *run)
{
    assert_int_equal(baton_work_checkpoint(run, "late", 4, NULL), BATON_ECLOSED);
    return NULL;
}

/* Where a quorum can be taken away, by which a write waits. */
static void a_stop_ends_a_checkpoint_that_is_being_stored(void **state)
{
    struct group *group = *state;
    pthread_t thread;
    int number;

    if (strcmp(tested->name, "raft-group") != 0) {
        skip();
    }
    work_on_all(group);
    submit_service(group->members[0].baton);
    GROUP_AWAIT((number = who_serves(-1)) >= 0);
    hands[number].hangs = true;
    group_close(group, (number + 1) % GROUP_NODES);
    group_close(group, (number + 2) % GROUP_NODES);
    assert_int_equal(pthread_create(&thread, NULL, store_late, hands[number].service), 0);
    for (int i = 0; i < 100; i++) {
        group_pause();
    }
    baton_stop(group->members[number].baton);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

int conformance_work(void)
{
    const struct CMUnitTest tests[] = {
        CASE(jobs_of_a_pool_run_once_and_their_results_are_kept),
        CASE(a_service_goes_on_elsewhere_when_its_process_ends),
        CASE(a_run_may_not_act_after_its_lease_though_the_loop_stands_still),
        CASE(a_stop_ends_a_checkpoint_that_is_being_stored),
    };

    return cmocka_run_group_tests_name("work", tests, NULL, NULL);
}

/* Work that the group's members share, by <baton/work.h>: a pool needs no more of a provider than
 * elections, keys and channels. */
#include "provider/conformance.h"

#include <baton/work.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { JOBS = 30 };

struct hand {
    struct baton_work *work;
    _Atomic(struct baton_work_run *) service; /* that runs here */
    char checkpoint[16];                      /* that it was given */
};

static struct hand hands[GROUP_NODES];
static atomic_int ran[JOBS];

/* A body is the number of a job, or "service". */
static void on_start(struct baton_work *work, struct baton_work_run *run, void *userdata)
{
    struct hand *hand = userdata;
    int job;
    (void)work;

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
    (void)work;
    (void)left_ns;

    if (hand->service == run) {
        hand->service = NULL;
        ASSERT_OK(baton_work_ended(run, true, 0, NULL, 0, failure));
    }
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
    struct baton_work_submission *given = NULL;
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
    ASSERT_OK(baton_work_submit(baton, "pool", NULL, items, &given, failure));
    ASSERT_OK(baton_work_wait(baton, "pool", (const char *const *)given->ids, JOBS,
                              GROUP_PATIENCE_MS, &results, failure));
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
    ASSERT_OK(baton_work_submit(group->members[0].baton, "pool", "services",
                                "{\"id\":\"x\",\"kind\":\"service\",\"body\":\"service\"}", NULL,
                                failure));
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

int conformance_work(void)
{
    const struct CMUnitTest tests[] = {
        CASE(jobs_of_a_pool_run_once_and_their_results_are_kept),
        CASE(a_service_goes_on_elsewhere_when_its_process_ends),
    };

    return cmocka_run_group_tests_name("work", tests, NULL, NULL);
}

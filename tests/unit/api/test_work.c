/* <baton/work.h>: what a program sees of a pool. Over memory:, each worker with a handle of its
 * own. */
#include "api/object.h"
#include "cmocka_all.h"
#include "fixture.h"
#include "lib/process.h"

#include <baton/work.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Workers, whose runs say in their bodies what they do ------------------------------------ */

#define OK(call)                                                                                   \
    do {                                                                                           \
        struct baton_error failure_ = {0}, *failure = &failure_;                                   \
        if ((call) != BATON_OK) {                                                                  \
            fail_msg("%s: %s", #call, failure->message);                                           \
        }                                                                                          \
    } while (0)

static int memories; /* so far: each has a memory of its own */

static int next_memory(void **state)
{
    (void)state;
    memories++;
    return 0;
}

static struct baton *open_node(const char *node)
{
    struct baton_options options = {.size = sizeof(options), .node = node};
    struct baton *baton = NULL;
    char url[32];

    (void)snprintf(url, sizeof(url), "memory:work-%d", memories);
    OK(baton_open(&baton, url, &options, failure));
    return baton;
}

struct hand {
    struct baton *baton;
    struct baton_work *work;
    atomic_int started, halted, ended, ready;
    _Atomic(struct baton_work_run *) latest;
    char checkpoint[16]; /* that the latest run was given */
};

static void end_run(struct hand *hand, struct baton_work_run *run, bool is_success)
{
    char output[64];
    int bytes = snprintf(output, sizeof(output), "done %s", (const char *)run->body);

    OK(baton_work_ended(run, is_success, 3, output, (size_t)bytes, failure));
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
    (void)work;

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
    (void)work;

    assert_true(left_ns >= 0);
    assert_true(baton_work_is_halted(run));
    assert_ptr_equal(run->own, hand);
    hand->halted++;
}

static void on_event(struct baton_work *work, const struct baton_work_event *event, void *userdata)
{
    struct hand *hand = userdata;
    (void)work;

    hand->ready |= event->type == BATON_WORK_EVENT_READY;
}

static struct baton_work_options options_of(struct hand *hand, const char *worker)
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

/* Without a `worker` it only leads. */
static void begin(struct hand *hand, const char *node, const char *worker)
{
    struct baton_work_options options = options_of(hand, worker);

    *hand = (struct hand){.baton = open_node(node)};
    OK(baton_work_open(&hand->work, hand->baton, "pool", &options, failure));
}

static void end(struct hand *hand)
{
    for (int i = 0; toilers > 0; i++) {
        assert_true(i < PROCESS_PATIENCE_MS);
        pause_a_moment();
    }
    baton_close(hand->baton);
}

static struct baton_work_submission *submit(struct baton *baton, const char *items)
{
    struct baton_work_submission *given = NULL;

    OK(baton_work_submit(baton, "pool", NULL, items, &given, failure));
    return given;
}

static void submit_as(struct baton *baton, const char *name, const char *items)
{
    OK(baton_work_submit(baton, "pool", name, items, NULL, failure));
}

static enum baton_work_end await_end(struct baton *baton, const char *id)
{
    struct baton_work_result *result = NULL;
    enum baton_work_end how;

    OK(baton_work_wait(baton, "pool", &id, 1, PROCESS_PATIENCE_MS, &result, failure));
    how = result->end;
    baton_work_results_free(result, 1);
    return how;
}

/* ---- Jobs ------------------------------------------------------------------------------------ */

static void jobs_run_and_their_results_come_in_the_order_of_the_ids(void **state)
{
    struct baton_work_submission *given;
    struct baton_work_result *results;
    struct hand a;
    (void)state;

    begin(&a, "a", "w");
    given =
        submit(a.baton, "[{\"body\":\"quick 0\"},{\"body\":\"quick 1\"},{\"body\":\"quick 2\"}]");
    assert_int_equal(given->count, 3);
    OK(baton_work_wait(a.baton, "pool", (const char *const *)given->ids, 3, -1, &results, failure));
    for (size_t i = 0; i < 3; i++) {
        char output[32];

        (void)snprintf(output, sizeof(output), "done quick %zu", i);
        assert_string_equal(results[i].id, given->ids[i]);
        assert_int_equal(results[i].end, BATON_WORK_COMPLETED);
        assert_int_equal(results[i].code, 3);
        assert_string_equal(results[i].output, output);
        assert_int_equal(results[i].bytes, strlen(output));
        assert_true(results[i].epoch > 0);
        assert_true(results[i].ended_unix_ms >= results[i].began_unix_ms);
    }
    baton_work_results_free(results, 3);
    baton_work_submission_free(given);
    end(&a);
}

static void a_result_can_be_asked_for_later_and_by_others(void **state)
{
    struct baton_work_result *result = NULL;
    struct baton *other = open_node("other");
    struct hand a;
    (void)state;

    begin(&a, "a", "w");
    submit_as(other, "one", "{\"id\":\"x\",\"body\":\"quick\"}");
    assert_int_equal(await_end(other, "x"), BATON_WORK_COMPLETED);
    OK(baton_work_result(other, "pool", "x", &result, failure));
    assert_string_equal(result->output, "done quick");
    baton_work_results_free(result, 1);
    assert_int_equal(baton_work_result(other, "pool", "y", &result, NULL), BATON_ENOENT);
    end(&a);
    baton_close(other);
}

static void what_was_submitted_twice_by_one_name_runs_once(void **state)
{
    struct hand a;
    (void)state;

    begin(&a, "a", "w");
    submit_as(a.baton, "batch", "{\"body\":\"quick\"}");
    submit_as(a.baton, "batch", "{\"body\":\"quick\"}");
    assert_int_equal(baton_work_submit(a.baton, "pool", "batch", "{\"body\":\"2\"}", NULL, NULL),
                     BATON_EEXIST);
    assert_int_equal(await_end(a.baton, "batch.0"), BATON_WORK_COMPLETED);
    assert_int_equal(a.started, 1);
    end(&a);
}

static void the_next_attempt_has_the_checkpoint_and_a_higher_epoch(void **state)
{
    struct hand a;
    uint64_t epoch;
    (void)state;

    begin(&a, "a", "w");
    submit_as(a.baton, "one", "{\"id\":\"x\",\"body\":\"wait\",\"retries\":1,\"backoff_ms\":1}");
    await(&a.started, 1);
    epoch = a.latest->epoch;
    assert_int_equal(a.latest->attempt, 1);
    assert_null(a.latest->checkpoint);
    OK(baton_work_progress(a.latest, 500, failure));
    OK(baton_work_checkpoint(a.latest, "third", 5, failure));
    OK(baton_work_checkpoint(a.latest, "half", 4, failure));
    end_run(&a, a.latest, false);
    await(&a.started, 2);
    assert_int_equal(a.latest->attempt, 2);
    assert_true(a.latest->epoch > epoch);
    assert_string_equal(a.checkpoint, "half");
    assert_int_equal(a.latest->checkpoint_bytes, 4);
    end_run(&a, a.latest, true);
    assert_int_equal(await_end(a.baton, "x"), BATON_WORK_COMPLETED);
    end(&a);
}

static void an_attempt_that_fails_for_the_last_time_is_failed(void **state)
{
    struct hand a;
    (void)state;

    begin(&a, "a", "w");
    submit_as(a.baton, "one", "{\"id\":\"x\",\"body\":\"wait\"}");
    await(&a.started, 1);
    end_run(&a, a.latest, false);
    assert_int_equal(await_end(a.baton, "x"), BATON_WORK_FAILED);
    end(&a);
}

static void a_cancelled_item_is_halted_and_may_act_until_it_has_ended(void **state)
{
    int64_t left_ns = 0;
    struct hand a;
    (void)state;

    begin(&a, "a", "w");
    submit_as(a.baton, "one", "{\"id\":\"x\",\"body\":\"wait\"}");
    await(&a.started, 1);
    OK(baton_work_cancel(a.baton, "pool", "x", failure));
    await(&a.halted, 1);
    assert_true(baton_work_is_halted(a.latest));
    assert_true(baton_work_may_act(a.latest, &left_ns));
    assert_true(left_ns > 0);
    assert_int_equal(baton_work_progress(a.latest, 1, NULL), BATON_ENOENT);
    end_run(&a, a.latest, true);
    assert_int_equal(await_end(a.baton, "x"), BATON_WORK_CANCELLED);
    end(&a);
}

/* ---- Several workers ------------------------------------------------------------------------- */

static void a_drained_worker_s_services_move_and_it_gets_them_back_later(void **state)
{
    struct hand a, b;
    (void)state;

    begin(&a, "a", "wa");
    submit_as(a.baton, "one", "{\"id\":\"x\",\"kind\":\"service\",\"body\":\"toil\"}");
    await(&a.started, 1);
    assert_true(a.latest->is_service);
    begin(&b, "b", "wb");
    OK(baton_work_drain(b.baton, "pool", "wa", true, failure));
    await(&b.started, 1);
    await(&a.ended, 1);
    OK(baton_work_drain(b.baton, "pool", "wa", false, failure));
    OK(baton_work_drain(b.baton, "pool", "wb", true, failure));
    await(&a.started, 2);
    assert_int_equal(baton_work_leave(a.work, 0, NULL), BATON_ETIMEDOUT);
    end(&b);
    end(&a);
}

static void leaving_waits_for_jobs_and_their_results(void **state)
{
    struct hand a, b;
    (void)state;

    begin(&b, "b", NULL);
    await(&b.ready, 1);
    begin(&a, "a", "wa");
    submit_as(b.baton, "one",
              "[{\"id\":\"x\",\"body\":\"quick\"},{\"id\":\"y\",\"body\":\"quick\"}]");
    await(&a.started, 2);
    OK(baton_work_leave(a.work, -1, failure));
    assert_int_equal(a.halted, 0);
    assert_int_equal(baton_work_leave(a.work, -1, NULL), BATON_EBUSY);
    OK(baton_work_close(a.work, failure));
    assert_int_equal(await_end(b.baton, "x"), BATON_WORK_COMPLETED);
    assert_int_equal(await_end(b.baton, "y"), BATON_WORK_COMPLETED);
    end(&a);
    end(&b);
}

static void what_still_runs_when_the_time_to_leave_is_over_goes_on_elsewhere(void **state)
{
    struct hand a, b;
    (void)state;

    begin(&a, "a", "wa");
    submit_as(a.baton, "one", "{\"id\":\"x\",\"body\":\"toil\"}");
    await(&a.started, 1);
    begin(&b, "b", "wb");
    assert_int_equal(baton_work_leave(a.work, 0, NULL), BATON_ETIMEDOUT);
    assert_int_equal(a.halted, 1);
    OK(baton_work_close(a.work, failure));
    await(&b.started, 1);
    assert_int_equal(b.latest->attempt, 2);
    OK(baton_work_cancel(b.baton, "pool", "x", failure));
    assert_int_equal(await_end(b.baton, "x"), BATON_WORK_CANCELLED);
    end(&a);
    end(&b);
}

static void another_worker_takes_over_what_ran_when_a_handle_was_stopped(void **state)
{
    struct baton_work_run *first;
    struct hand a, b;
    uint64_t epoch;
    (void)state;

    begin(&a, "a", "wa");
    submit_as(a.baton, "one", "{\"id\":\"x\",\"body\":\"wait\"}");
    await(&a.started, 1);
    first = a.latest;
    epoch = first->epoch;
    OK(baton_work_checkpoint(first, "mine", 4, failure));
    begin(&b, "b", "wb");
    baton_stop(a.baton);
    assert_false(baton_work_may_act(first, NULL));
    assert_true(baton_work_is_halted(first));
    assert_int_equal(baton_work_ended(first, true, 0, NULL, 0, NULL), BATON_ECLOSED);
    assert_int_equal(baton_work_checkpoint(first, "late", 4, NULL), BATON_ECLOSED);
    await(&b.started, 1);
    assert_true(b.latest->epoch > epoch);
    assert_string_equal(b.checkpoint, "mine");
    end_run(&b, b.latest, true);
    assert_int_equal(await_end(b.baton, "x"), BATON_WORK_COMPLETED);
    end(&a);
    end(&b);
}

static void a_closed_handle_can_be_opened_again(void **state)
{
    struct baton_work_options options;
    struct hand a;
    (void)state;

    begin(&a, "a", "w");
    options = options_of(&a, "w");
    for (int i = 1; i <= 3; i++) {
        OK(baton_work_close(a.work, failure));
        OK(baton_work_open(&a.work, a.baton, "pool", &options, failure));
        submit_as(a.baton, NULL, "{\"body\":\"quick\"}");
        await(&a.ended, i);
    }
    OK(baton_work_close(NULL, failure));
    end(&a);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

static void a_wait_ends_with_its_time_and_leaves_nothing_behind(void **state)
{
    const char *twice[] = {"x", "x"}, *once[] = {"x"};
    struct baton_error error = {0};
    struct hand a;
    (void)state;

    begin(&a, "a", "w");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(baton_work_wait(a.baton, "pool", once, 1, 0, NULL, NULL), BATON_ETIMEDOUT);
    }
    assert_null(a.baton->work_waits);
    assert_int_equal(baton_work_wait(a.baton, "pool", twice, 2, 0, NULL, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "\"x\""));
    OK(baton_work_wait(a.baton, "pool", NULL, 0, -1, NULL, failure));
    end(&a);
}

static void the_list_and_the_status_show_what_there_is(void **state)
{
    static const char *const ids[] = {"a", "b", "k", "t", "x", "y"};
    struct baton *other = open_node("other");
    char *list = NULL, *status = NULL, entry[32];
    const char *at;
    struct hand a;
    (void)state;

    assert_int_equal(baton_work_status(other, "pool", 0, &status, NULL), BATON_ETIMEDOUT);
    begin(&a, "a", "w");
    submit_as(other, "one",
              "[{\"id\":\"y\",\"body\":\"wait\"},{\"id\":\"t\"},{\"id\":\"b\"},{\"id\":\"x\","
              "\"body\":\"quick\",\"priority\":1},{\"id\":\"k\"},{\"id\":\"a\"}]");
    assert_int_equal(await_end(other, "x"), BATON_WORK_COMPLETED);
    await(&a.started, 4);
    OK(baton_work_list(other, "pool", &list, failure));
    at = list;
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        (void)snprintf(entry, sizeof(entry), "{\"id\":\"%s\",\"state\":", ids[i]);
        at = strstr(at, entry);
        assert_non_null(at);
    }
    assert_non_null(strstr(list, "\"state\":\"processing\",\"worker\":\"w\","));
    OK(baton_work_status(other, "pool", PROCESS_PATIENCE_MS, &status, failure));
    assert_non_null(strstr(status, "\"worker\":\"w\""));
    free(list);
    free(status);
    end(&a);
    baton_close(other);
}

/* ---- What is refused ------------------------------------------------------------------------- */

static void wrong_options_are_refused_by_name(void **state)
{
    struct hand a = {.baton = open_node("a")};
    struct baton_work_options wrong[9];
    static const char *const says[9] = {"strategy: \"best\"", "slots: 1000001",
                                        "gpus: 1001",         "memory_mib",
                                        "labels[1]",          "report_interval_ms: -1",
                                        "it has no on_start", "sizeof(struct baton_work_options)",
                                        "worker \"all\""};
    struct baton_error error;
    struct baton_work *work = NULL;
    (void)state;

    for (int i = 0; i < 9; i++) {
        wrong[i] = options_of(&a, "w");
    }
    wrong[0].strategy = "best";
    wrong[1].slots = 1000001;
    wrong[2].gpus = 1001;
    wrong[3].memory_mib = UINT64_MAX;
    wrong[4].labels = "gpu  b\"d";
    wrong[5].report_interval_ms = -1;
    wrong[6].on_start = NULL;
    wrong[7].size = 3;
    wrong[8].worker = "all";
    for (int i = 0; i < 9; i++) {
        assert_int_equal(baton_work_open(&work, a.baton, "pool", &wrong[i], &error), BATON_EINVAL);
        assert_int_equal(error.code, BATON_EINVAL);
        if (!strstr(error.message, says[i])) {
            fail_msg("%s: %s", says[i], error.message);
        }
    }
    wrong[0].strategy = "priority";
    assert_int_equal(baton_work_open(&work, a.baton, "a/b", &wrong[0], &error), BATON_EINVAL);
    assert_null(work);
    baton_close(a.baton);
}

static void a_pool_is_opened_once_by_a_handle(void **state)
{
    struct baton_work_options options;
    struct baton_work *work = NULL;
    struct hand a;
    (void)state;

    begin(&a, "a", "w");
    options = options_of(&a, "w2");
    assert_int_equal(baton_work_open(&work, a.baton, "pool", &options, NULL), BATON_EEXIST);
    assert_null(work);
    submit_as(a.baton, NULL, "{\"body\":\"quick\"}");
    await(&a.ended, 1);
    end(&a);
}

static void wrong_items_are_refused_with_their_place(void **state)
{
    static const struct {
        const char *items, *says;
    } rows[] = {
        {"[{\"body\":", "no JSON array or object at line 1"},
        {"7", "no JSON array or object at line 1"},
        {"[{\"priority\":\"high\"}]", "priority"},
        {"[]", "1 to 100000 items"},
        {"[{\"body\":\"a\",\"body\":\"b\"}]", "duplicate"},
    };
    struct baton *baton = open_node("a");
    struct baton_error error;
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(baton_work_submit(baton, "pool", NULL, rows[i].items, NULL, &error),
                         BATON_EINVAL);
        if (!strstr(error.message, rows[i].says)) {
            fail_msg("%s: %s", rows[i].items, error.message);
        }
    }
    baton_close(baton);
}

static void what_is_too_large_is_refused_and_the_run_goes_on(void **state)
{
    static const char much[128 * 1024];
    struct hand a;
    (void)state;

    begin(&a, "a", "w");
    submit_as(a.baton, "one", "{\"id\":\"x\",\"body\":\"wait\"}");
    await(&a.started, 1);
    assert_int_equal(baton_work_checkpoint(a.latest, much, sizeof(much), NULL), BATON_ETOOBIG);
    assert_int_equal(baton_work_ended(a.latest, true, 0, much, sizeof(much), NULL), BATON_ETOOBIG);
    assert_int_equal(baton_work_progress(a.latest, 1001, NULL), BATON_EINVAL);
    end_run(&a, a.latest, true);
    assert_int_equal(await_end(a.baton, "x"), BATON_WORK_COMPLETED);
    end(&a);
}

static void in_a_forked_child_nothing_may_act(void **state)
{
    struct hand a;
    pid_t child;
    int status;
    (void)state;

    begin(&a, "a", "w");
    submit_as(a.baton, "one", "{\"id\":\"x\",\"body\":\"wait\"}");
    await(&a.started, 1);
    child = fork();
    if (child == 0) {
        int wrong = baton_work_may_act(a.latest, NULL);
        wrong += !baton_work_is_halted(a.latest);
        wrong += baton_work_ended(a.latest, true, 0, NULL, 0, NULL) != BATON_ECLOSED;
        wrong += baton_work_progress(a.latest, 1, NULL) != BATON_ECLOSED;
        wrong += baton_work_checkpoint(a.latest, "", 0, NULL) != BATON_ECLOSED;
        wrong += baton_work_cancel(a.baton, "pool", "x", NULL) != BATON_ECLOSED;
        wrong += baton_work_leave(a.work, 0, NULL) != BATON_ECLOSED;
        wrong += baton_work_close(a.work, NULL) != BATON_ECLOSED;
        _exit(wrong);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(baton_work_may_act(a.latest, NULL));
    end(&a);
}

/* ---- In callbacks, and behind a stop --------------------------------------------------------- */

struct caller {
    struct baton *baton;
    atomic_int waited, ended, stops;
};

static void call_what_waits(struct baton_work *work, struct baton_work_run *run, void *userdata)
{
    struct caller *caller = userdata;
    struct baton_work_result *results;
    char *text;

    caller->waited += baton_work_leave(work, -1, NULL) != BATON_EDEADLK;
    caller->waited += baton_work_close(work, NULL) != BATON_EDEADLK;
    caller->waited +=
        baton_work_submit(caller->baton, "pool", NULL, "{}", NULL, NULL) != BATON_EDEADLK;
    caller->waited +=
        baton_work_wait(caller->baton, "pool", NULL, 0, -1, NULL, NULL) != BATON_EDEADLK;
    caller->waited +=
        baton_work_result(caller->baton, "pool", "x", &results, NULL) != BATON_EDEADLK;
    caller->waited += baton_work_list(caller->baton, "pool", &text, NULL) != BATON_EDEADLK;
    caller->waited += baton_work_status(caller->baton, "pool", -1, &text, NULL) != BATON_EDEADLK;
    /* What does not wait: */
    caller->waited += baton_work_cancel(caller->baton, "pool", "other", NULL) != BATON_OK;
    caller->waited += baton_work_drain(caller->baton, "pool", "other", false, NULL) != BATON_OK;
    caller->waited += baton_work_progress(run, 1, NULL) != BATON_OK;
    caller->waited += baton_work_checkpoint(run, "", 0, NULL) != BATON_OK;
    if (caller->stops) {
        baton_stop(caller->baton);
    }
    caller->waited += baton_work_ended(run, true, 0, NULL, 0, NULL) != BATON_OK;
    caller->ended++;
}

static void a_callback_may_call_what_does_not_wait(void **state)
{
    struct caller caller = {.baton = open_node("a")};
    struct baton_work_options options = {
        .size = sizeof(options), .worker = "w", .on_start = call_what_waits, .userdata = &caller};
    struct baton_work *work;
    (void)state;

    OK(baton_work_open(&work, caller.baton, "pool", &options, failure));
    submit_as(caller.baton, "one", "{\"id\":\"x\"}");
    assert_int_equal(await_end(caller.baton, "x"), BATON_WORK_COMPLETED);
    assert_int_equal(caller.waited, 0);
    baton_close(caller.baton);
}

static void a_callback_may_stop_the_provider(void **state)
{
    struct caller caller = {.baton = open_node("a"), .stops = 1};
    struct baton_work_options options = {
        .size = sizeof(options), .worker = "w", .on_start = call_what_waits, .userdata = &caller};
    struct baton_work *work;
    (void)state;

    OK(baton_work_open(&work, caller.baton, "pool", &options, failure));
    submit_as(caller.baton, "one", "{\"id\":\"x\"}");
    await(&caller.ended, 1);
    assert_int_equal(caller.waited, 0);
    OK(baton_work_close(work, failure));
    baton_close(caller.baton);
}

struct late {
    struct hand *hand;
    atomic_int begun, over;
};

static void *wait_late(void *userdata)
{
    struct late *late = userdata;
    const char *id = "never";

    late->begun++;
    assert_int_equal(
        baton_work_wait(late->hand->baton, "pool", &id, 1, PROCESS_PATIENCE_MS, NULL, NULL),
        BATON_ECLOSED);
    late->over++;
    return NULL;
}

static void *leave_late(void *userdata)
{
    struct late *late = userdata;

    late->begun++;
    assert_int_equal(baton_work_leave(late->hand->work, PROCESS_PATIENCE_MS, NULL), BATON_ECLOSED);
    late->over++;
    return NULL;
}

static void *ask_late(void *userdata)
{
    struct late *late = userdata;
    char *text;

    late->begun++;
    assert_int_equal(
        baton_work_status(late->hand->baton, "other", PROCESS_PATIENCE_MS, &text, NULL),
        BATON_ECLOSED);
    late->over++;
    return NULL;
}

static void a_stop_ends_all_that_waits(void **state)
{
    void *(*const bodies[])(void *) = {wait_late, leave_late, ask_late};
    struct hand a;
    struct late late = {.hand = &a};
    pthread_t threads[3];
    (void)state;

    begin(&a, "a", "w");
    submit_as(a.baton, "one", "{\"id\":\"x\",\"body\":\"wait\"}");
    await(&a.started, 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, bodies[i], &late), 0);
    }
    await(&late.begun, 3);
    for (int i = 0; i < 50; i++) {
        pause_a_moment();
        assert_int_equal(late.over, 0);
    }
    baton_stop(a.baton);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    end(&a);
}

/* ---- Threads --------------------------------------------------------------------------------- */

enum { CHURN_ROUNDS = 20 };

/* An end without a result is noticed late: so only the last one is waited for. */
static void *churn(void *baton)
{
    for (int i = 1; i <= CHURN_ROUNDS; i++) {
        struct baton_work_submission *given =
            submit(baton, "[{\"body\":\"quick\"},{\"body\":\"toil\"}]");
        struct baton_work_result *results = NULL;
        size_t count = i < CHURN_ROUNDS ? 1 : 2;
        char *list = NULL;

        OK(baton_work_cancel(baton, "pool", given->ids[1], failure));
        OK(baton_work_wait(baton, "pool", (const char *const *)given->ids, count,
                           PROCESS_PATIENCE_MS, &results, failure));
        assert_int_equal(results[0].end, BATON_WORK_COMPLETED);
        assert_int_equal(results[count - 1].end,
                         count == 1 ? BATON_WORK_COMPLETED : BATON_WORK_CANCELLED);
        OK(baton_work_list(baton, "pool", &list, failure));
        free(list);
        baton_work_results_free(results, count);
        baton_work_submission_free(given);
    }
    return NULL;
}

static void *come_and_go(void *userdata)
{
    struct hand *hand = userdata;
    struct baton_work_options options = options_of(hand, "wc");

    for (int i = 0; i < CHURN_ROUNDS / 4; i++) {
        int code;

        OK(baton_work_open(&hand->work, hand->baton, "pool", &options, failure));
        pause_a_moment();
        code = baton_work_leave(hand->work, 10, NULL);
        assert_true(code == BATON_OK || code == BATON_ETIMEDOUT);
        OK(baton_work_close(hand->work, failure));
    }
    return NULL;
}

/* For the sanitizers, too. */
static void any_thread_may_call_anything(void **state)
{
    struct hand a, b, c = {.baton = open_node("c")};
    pthread_t threads[4];
    (void)state;

    begin(&a, "a", "wa");
    begin(&b, "b", "wb");
    assert_int_equal(pthread_create(&threads[0], NULL, churn, a.baton), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, churn, b.baton), 0);
    assert_int_equal(pthread_create(&threads[2], NULL, churn, a.baton), 0);
    assert_int_equal(pthread_create(&threads[3], NULL, come_and_go, &c), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    end(&c);
    end(&a);
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(jobs_run_and_their_results_come_in_the_order_of_the_ids,
                               next_memory),
        cmocka_unit_test_setup(a_result_can_be_asked_for_later_and_by_others, next_memory),
        cmocka_unit_test_setup(what_was_submitted_twice_by_one_name_runs_once, next_memory),
        cmocka_unit_test_setup(the_next_attempt_has_the_checkpoint_and_a_higher_epoch, next_memory),
        cmocka_unit_test_setup(an_attempt_that_fails_for_the_last_time_is_failed, next_memory),
        cmocka_unit_test_setup(a_cancelled_item_is_halted_and_may_act_until_it_has_ended,
                               next_memory),
        cmocka_unit_test_setup(a_drained_worker_s_services_move_and_it_gets_them_back_later,
                               next_memory),
        cmocka_unit_test_setup(leaving_waits_for_jobs_and_their_results, next_memory),
        cmocka_unit_test_setup(what_still_runs_when_the_time_to_leave_is_over_goes_on_elsewhere,
                               next_memory),
        cmocka_unit_test_setup(another_worker_takes_over_what_ran_when_a_handle_was_stopped,
                               next_memory),
        cmocka_unit_test_setup(a_closed_handle_can_be_opened_again, next_memory),
        cmocka_unit_test_setup(a_wait_ends_with_its_time_and_leaves_nothing_behind, next_memory),
        cmocka_unit_test_setup(the_list_and_the_status_show_what_there_is, next_memory),
        cmocka_unit_test_setup(wrong_options_are_refused_by_name, next_memory),
        cmocka_unit_test_setup(a_pool_is_opened_once_by_a_handle, next_memory),
        cmocka_unit_test_setup(wrong_items_are_refused_with_their_place, next_memory),
        cmocka_unit_test_setup(what_is_too_large_is_refused_and_the_run_goes_on, next_memory),
        cmocka_unit_test_setup(in_a_forked_child_nothing_may_act, next_memory),
        cmocka_unit_test_setup(a_callback_may_call_what_does_not_wait, next_memory),
        cmocka_unit_test_setup(a_callback_may_stop_the_provider, next_memory),
        cmocka_unit_test_setup(a_stop_ends_all_that_waits, next_memory),
        cmocka_unit_test_setup(any_thread_may_call_anything, next_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

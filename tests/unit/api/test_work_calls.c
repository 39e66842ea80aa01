/* Calls of <baton/work.h> that are refused, that come from callbacks or from several threads, and
 * those that meet a stop. */
#include "hand.h"

#include "lib/process.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

    ASSERT_OK(baton_work_open(&work, caller.baton, "pool", &options, failure));
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

    ASSERT_OK(baton_work_open(&work, caller.baton, "pool", &options, failure));
    submit_as(caller.baton, "one", "{\"id\":\"x\"}");
    await(&caller.ended, 1);
    assert_int_equal(caller.waited, 0);
    ASSERT_OK(baton_work_close(work, failure));
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
    assert_int_equal(baton_work_wait(late->hand->baton, "pool", &id, 1, PATIENCE_MS, NULL, NULL),
                     BATON_ECLOSED);
    late->over++;
    return NULL;
}

static void *leave_late(void *userdata)
{
    struct late *late = userdata;

    late->begun++;
    assert_int_equal(baton_work_leave(late->hand->work, PATIENCE_MS, NULL), BATON_ECLOSED);
    late->over++;
    return NULL;
}

static void *ask_late(void *userdata)
{
    struct late *late = userdata;
    char *text;

    late->begun++;
    assert_int_equal(baton_work_status(late->hand->baton, "other", PATIENCE_MS, &text, NULL),
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

        ASSERT_OK(baton_work_cancel(baton, "pool", given->ids[1], failure));
        ASSERT_OK(baton_work_wait(baton, "pool", (const char *const *)given->ids, count,
                                  PATIENCE_MS, &results, failure));
        assert_int_equal(results[0].end, BATON_WORK_COMPLETED);
        assert_int_equal(results[count - 1].end,
                         count == 1 ? BATON_WORK_COMPLETED : BATON_WORK_CANCELLED);
        ASSERT_OK(baton_work_list(baton, "pool", &list, failure));
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

        ASSERT_OK(baton_work_open(&hand->work, hand->baton, "pool", &options, failure));
        pause_a_moment();
        code = baton_work_leave(hand->work, 10, NULL);
        assert_true(code == BATON_OK || code == BATON_ETIMEDOUT);
        ASSERT_OK(baton_work_close(hand->work, failure));
    }
    return NULL;
}

/* For the sanitizers, too. */
static void any_thread_may_call_anything(void **state)
{
    struct hand a, b, c = {.baton = open_node("c")};
    pthread_t threads[4];

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

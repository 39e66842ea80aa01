/* <baton/work.h>: items that run, workers that leave, and what is said of both. */
#include "hand.h"

#include "api/object.h"
#include "api/work.h"
#include "lib/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Jobs ------------------------------------------------------------------------------------ */

static void jobs_run_and_their_results_come_in_the_order_of_the_ids(void **state)
{
    struct baton_work_submission *given;
    struct baton_work_result *results;
    struct hand a;

    begin(&a, "a", "w");
    given =
        submit(a.baton, "[{\"body\":\"quick 0\"},{\"body\":\"quick 1\"},{\"body\":\"quick 2\"}]");
    assert_int_equal(given->count, 3);
    ASSERT_OK(baton_work_wait(a.baton, "pool", (const char *const *)given->ids, 3, -1, &results,
                              failure));
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

    begin(&a, "a", "w");
    submit_as(other, "one", "{\"id\":\"x\",\"body\":\"quick\"}");
    assert_int_equal(await_end(other, "x"), BATON_WORK_COMPLETED);
    ASSERT_OK(baton_work_result(other, "pool", "x", &result, failure));
    assert_string_equal(result->output, "done quick");
    baton_work_results_free(result, 1);
    assert_int_equal(baton_work_result(other, "pool", "y", &result, NULL), BATON_ENOENT);
    end(&a);
    baton_close(other);
}

static void what_was_submitted_twice_by_one_name_runs_once(void **state)
{
    struct hand a;

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

    begin(&a, "a", "w");
    submit_as(a.baton, "one", "{\"id\":\"x\",\"body\":\"wait\",\"retries\":1,\"backoff_ms\":1}");
    await(&a.started, 1);
    epoch = a.latest->epoch;
    assert_int_equal(a.latest->attempt, 1);
    assert_null(a.latest->checkpoint);
    ASSERT_OK(baton_work_progress(a.latest, 500, failure));
    ASSERT_OK(baton_work_checkpoint(a.latest, "third", 5, failure));
    ASSERT_OK(baton_work_checkpoint(a.latest, "half", 4, failure));
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

    begin(&a, "a", "w");
    submit_as(a.baton, "one", "{\"id\":\"x\",\"body\":\"wait\"}");
    await(&a.started, 1);
    end_run(&a, a.latest, false);
    assert_int_equal(await_end(a.baton, "x"), BATON_WORK_FAILED);
    end(&a);
}

/* A process that stood still sees the end of its lease before the library does, which may even
 * renew it. What ended for that is not done. */
static void a_run_that_saw_its_lease_end_has_no_result_and_is_lost_and_not_failed(void **state)
{
    struct hand a;
    int64_t end_ns;

    begin(&a, "a", "w");
    submit_as(a.baton, "one", "{\"id\":\"x\",\"body\":\"wait\"}");
    for (int attempt = 1; attempt < 3; attempt++) {
        await(&a.started, attempt);
        assert_int_equal(a.latest->attempt, attempt);
        end_ns = atomic_exchange(&a.work->lease.end_ns, 1);
        assert_true(baton_work_is_halted(a.latest));
        atomic_store(&a.work->lease.end_ns, end_ns);
        assert_true(baton_work_is_halted(a.latest));
        assert_true(baton_work_may_act(a.latest, NULL));
        end_run(&a, a.latest, attempt == 1); /* whatever it says of itself */
    }
    await(&a.started, 3);
    end_run(&a, a.latest, true);
    assert_int_equal(await_end(a.baton, "x"), BATON_WORK_COMPLETED);
    end(&a);
}

static void a_cancelled_item_is_halted_and_may_act_until_it_has_ended(void **state)
{
    int64_t left_ns = 0;
    struct hand a;

    begin(&a, "a", "w");
    submit_as(a.baton, "one", "{\"id\":\"x\",\"body\":\"wait\"}");
    await(&a.started, 1);
    ASSERT_OK(baton_work_cancel(a.baton, "pool", "x", failure));
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

    begin(&a, "a", "wa");
    submit_as(a.baton, "one", "{\"id\":\"x\",\"kind\":\"service\",\"body\":\"toil\"}");
    await(&a.started, 1);
    assert_true(a.latest->is_service);
    begin(&b, "b", "wb");
    ASSERT_OK(baton_work_drain(b.baton, "pool", "wa", true, failure));
    await(&b.started, 1);
    await(&a.ended, 1);
    ASSERT_OK(baton_work_drain(b.baton, "pool", "wa", false, failure));
    ASSERT_OK(baton_work_drain(b.baton, "pool", "wb", true, failure));
    await(&a.started, 2);
    assert_int_equal(baton_work_leave(a.work, 0, NULL), BATON_ETIMEDOUT);
    end(&b);
    end(&a);
}

static void leaving_waits_for_jobs_and_their_results(void **state)
{
    struct hand a, b;

    begin(&b, "b", NULL);
    await(&b.ready, 1);
    begin(&a, "a", "wa");
    submit_as(b.baton, "one",
              "[{\"id\":\"x\",\"body\":\"quick\"},{\"id\":\"y\",\"body\":\"quick\"}]");
    await(&a.started, 2);
    ASSERT_OK(baton_work_leave(a.work, -1, failure));
    assert_int_equal(a.halted, 0);
    assert_int_equal(baton_work_leave(a.work, -1, NULL), BATON_EBUSY);
    ASSERT_OK(baton_work_close(a.work, failure));
    assert_int_equal(await_end(b.baton, "x"), BATON_WORK_COMPLETED);
    assert_int_equal(await_end(b.baton, "y"), BATON_WORK_COMPLETED);
    end(&a);
    end(&b);
}

static void what_still_runs_when_the_time_to_leave_is_over_goes_on_elsewhere(void **state)
{
    struct hand a, b;

    begin(&a, "a", "wa");
    submit_as(a.baton, "one", "{\"id\":\"x\",\"body\":\"toil\"}");
    await(&a.started, 1);
    begin(&b, "b", "wb");
    assert_int_equal(baton_work_leave(a.work, 0, NULL), BATON_ETIMEDOUT);
    assert_int_equal(a.halted, 1);
    ASSERT_OK(baton_work_close(a.work, failure));
    await(&b.started, 1);
    assert_int_equal(b.latest->attempt, 2);
    ASSERT_OK(baton_work_cancel(b.baton, "pool", "x", failure));
    assert_int_equal(await_end(b.baton, "x"), BATON_WORK_CANCELLED);
    end(&a);
    end(&b);
}

static void leaving_says_how_many_results_no_leader_has_confirmed(void **state)
{
    struct hand a = {.baton = open_node("a")}, b;
    struct baton_work_options options = options_of(&a, "wa");
    struct baton_error error = {0};

    options.never_leads = true;
    ASSERT_OK(baton_work_open(&a.work, a.baton, "pool", &options, failure));
    begin(&b, "b", NULL);
    submit_as(b.baton, "one", "{\"id\":\"x\",\"body\":\"wait\"}");
    await(&a.started, 1);
    ASSERT_OK(baton_work_close(b.work, failure));
    end_run(&a, a.latest, true);
    assert_int_equal(baton_work_leave(a.work, 10, &error), BATON_ETIMEDOUT);
    assert_non_null(strstr(error.message, "the results of 1 of its jobs"));
    assert_int_equal(a.halted, 0);
    end(&a);
    end(&b);
}

static void another_worker_takes_over_what_ran_when_a_handle_was_stopped(void **state)
{
    struct baton_work_run *first;
    struct hand a, b;
    uint64_t epoch;

    begin(&a, "a", "wa");
    submit_as(a.baton, "one", "{\"id\":\"x\",\"body\":\"wait\"}");
    await(&a.started, 1);
    first = a.latest;
    epoch = first->epoch;
    ASSERT_OK(baton_work_checkpoint(first, "mine", 4, failure));
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

    begin(&a, "a", "w");
    options = options_of(&a, "w");
    for (int i = 1; i <= 3; i++) {
        ASSERT_OK(baton_work_close(a.work, failure));
        ASSERT_OK(baton_work_open(&a.work, a.baton, "pool", &options, failure));
        submit_as(a.baton, NULL, "{\"body\":\"quick\"}");
        await(&a.ended, i);
    }
    ASSERT_OK(baton_work_close(NULL, failure));
    end(&a);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

static void a_wait_ends_with_its_time_and_leaves_nothing_behind(void **state)
{
    const char *twice[] = {"x", "x"}, *once[] = {"x"};
    struct baton_error error = {0};
    struct hand a;

    begin(&a, "a", "w");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(baton_work_wait(a.baton, "pool", once, 1, 0, NULL, NULL), BATON_ETIMEDOUT);
    }
    assert_null(a.baton->work_waits);
    assert_int_equal(baton_work_wait(a.baton, "pool", twice, 2, 0, NULL, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "\"x\""));
    ASSERT_OK(baton_work_wait(a.baton, "pool", NULL, 0, -1, NULL, failure));
    end(&a);
}

static void the_list_and_the_status_show_what_there_is(void **state)
{
    static const char *const ids[] = {"a", "b", "k", "t", "x", "y"};
    struct baton *other = open_node("other");
    char *list = NULL, *status = NULL, entry[32];
    const char *at;
    struct hand a;

    assert_int_equal(baton_work_status(other, "pool", 0, &status, NULL), BATON_ETIMEDOUT);
    begin(&a, "a", "w");
    submit_as(other, "one",
              "[{\"id\":\"y\",\"body\":\"wait\"},{\"id\":\"t\"},{\"id\":\"b\"},{\"id\":\"x\","
              "\"body\":\"quick\",\"priority\":1},{\"id\":\"k\"},{\"id\":\"a\"}]");
    assert_int_equal(await_end(other, "x"), BATON_WORK_COMPLETED);
    await(&a.started, 3);
    ASSERT_OK(baton_work_list(other, "pool", &list, failure));
    at = list;
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        (void)snprintf(entry, sizeof(entry), "{\"id\":\"%s\",\"state\":", ids[i]);
        at = strstr(at, entry);
        assert_non_null(at);
    }
    assert_non_null(strstr(list, "\"state\":\"processing\",\"worker\":\"w\","));
    ASSERT_OK(baton_work_status(other, "pool", PATIENCE_MS, &status, failure));
    assert_non_null(strstr(status, "\"worker\":\"w\""));
    free(list);
    free(status);
    end(&a);
    baton_close(other);
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
        cmocka_unit_test_setup(
            a_run_that_saw_its_lease_end_has_no_result_and_is_lost_and_not_failed, next_memory),
        cmocka_unit_test_setup(a_cancelled_item_is_halted_and_may_act_until_it_has_ended,
                               next_memory),
        cmocka_unit_test_setup(a_drained_worker_s_services_move_and_it_gets_them_back_later,
                               next_memory),
        cmocka_unit_test_setup(leaving_waits_for_jobs_and_their_results, next_memory),
        cmocka_unit_test_setup(what_still_runs_when_the_time_to_leave_is_over_goes_on_elsewhere,
                               next_memory),
        cmocka_unit_test_setup(leaving_says_how_many_results_no_leader_has_confirmed, next_memory),
        cmocka_unit_test_setup(another_worker_takes_over_what_ran_when_a_handle_was_stopped,
                               next_memory),
        cmocka_unit_test_setup(a_closed_handle_can_be_opened_again, next_memory),
        cmocka_unit_test_setup(a_wait_ends_with_its_time_and_leaves_nothing_behind, next_memory),
        cmocka_unit_test_setup(the_list_and_the_status_show_what_there_is, next_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

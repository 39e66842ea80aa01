/* Entries, their moves, places, the idle ones, keys, findings. */
#include "ledger_tools.h"

static void an_item_that_was_submitted_is_idle(void **state)
{
    struct ledger *ledger = ledger_new();
    struct ledger_entry *entry = submit_id(ledger, "a");
    (void)state;

    assert_int_equal(entry->state, WORK_IDLE);
    assert_int_equal(entry->epoch, 0);
    assert_int_equal(entry->attempt, 0);
    assert_int_equal(entry->since_unix_ms, NOW_MS);
    assert_string_equal(entry->id, "a");
    assert_string_equal(entry->item->id, "a");
    assert_ptr_equal(ledger_find(ledger, "a"), entry);
    assert_null(ledger_find(ledger, "b"));
    assert_ptr_equal(ledger_idle(ledger), entry);
    assert_int_equal(ledger_count(ledger, WORK_IDLE), 1);
    ledger_free(ledger);
}

static void the_same_item_submitted_again_is_the_same_entry(void **state)
{
    struct ledger *ledger = ledger_new();
    struct ledger_entry *entry = submit_id(ledger, "a"), *again;
    struct work_item *other = make_item("{'id':'a','priority':1}");
    (void)state;

    assert_ptr_equal(submit_id(ledger, "a"), entry);
    assert_int_equal(ledger_submit(ledger, other, NOW_MS, &again), BATON_EEXIST);
    assert_ptr_equal(again, entry);
    assert_int_equal(entry->item->priority, 0);
    assert_int_equal(ledger_count(ledger, WORK_IDLE), 1);
    work_item_unref(other);
    ledger_free(ledger);
}

static void a_placing_has_a_higher_epoch_and_at_least_its_leaders(void **state)
{
    struct ledger *ledger = ledger_new();
    struct ledger_entry *entry = submit_id(ledger, "a");
    (void)state;

    assert_int_equal(ledger_place(ledger, entry, "w", 7, 5, 2000), BATON_OK);
    assert_int_equal(entry->state, WORK_PROCESSING);
    assert_int_equal(entry->epoch, 5);
    assert_int_equal(entry->attempt, 1);
    assert_int_equal(entry->since_unix_ms, 2000);
    assert_int_equal(entry->began_unix_ms, 2000);
    assert_string_equal(ledger_place_worker(entry->place), "w");
    assert_int_equal(ledger_place_session(entry->place), 7);
    ledger_release(ledger, entry, 3000);
    assert_int_equal(entry->state, WORK_IDLE);
    assert_int_equal(entry->epoch, 5);
    assert_null(entry->place);
    assert_int_equal(ledger_place(ledger, entry, "w", 7, 5, 4000), BATON_OK);
    assert_int_equal(entry->epoch, 6);
    assert_int_equal(entry->attempt, 2);
    ledger_free(ledger);
}

static void no_placing_has_an_epoch_that_cannot_be_written(void **state)
{
    struct ledger *ledger = ledger_new();
    struct ledger_entry *entry = submit_id(ledger, "a");
    (void)state;

    assert_int_equal(ledger_place(ledger, entry, "w", 7, WORK_NUMBER_MAX, 1), BATON_OK);
    ledger_release(ledger, entry, 1);
    assert_int_equal(ledger_place(ledger, entry, "w", 7, 1, 1), BATON_EFULL);
    assert_int_equal(entry->state, WORK_IDLE);
    assert_int_equal(entry->epoch, WORK_NUMBER_MAX);
    ledger_free(ledger);
}

static void each_end_of_a_placing_is_counted_as_what_it_was(void **state)
{
    struct ledger *ledger = ledger_new();
    struct ledger_entry *entry = submit(ledger, "{'id':'a','retries':1}");
    (void)state;

    place(ledger, entry, "w", 7);
    ledger_lose(ledger, entry, NOW_MS);
    assert_int_equal(entry->losses, 1);
    place(ledger, entry, "w", 8);
    ledger_release(ledger, entry, NOW_MS);
    place(ledger, entry, "w", 8);
    ledger_fail(ledger, entry, 3, NOW_MS);
    assert_int_equal(entry->state, WORK_IDLE);
    assert_int_equal(entry->failures, 1);
    assert_int_equal(entry->code, 3);
    place(ledger, entry, "w", 8);
    ledger_fail(ledger, entry, 4, NOW_MS);
    assert_int_equal(entry->state, WORK_FAILED);
    assert_int_equal(entry->failures, 2);
    assert_int_equal(entry->losses, 1);
    assert_int_equal(entry->attempt, 4);
    assert_int_equal(entry->code, 4);
    ledger_free(ledger);
}

static void a_service_that_failed_is_placed_again(void **state)
{
    struct ledger *ledger = ledger_new();
    struct ledger_entry *entry = submit(ledger, "{'id':'a','kind':'service'}");
    (void)state;

    for (int i = 1; i <= 3; i++) {
        place(ledger, entry, "w", 7);
        ledger_fail(ledger, entry, 1, NOW_MS);
        assert_int_equal(entry->state, WORK_IDLE);
        assert_int_equal(entry->failures, i);
    }
    ledger_free(ledger);
}

static void a_move_clears_what_the_leader_knew_of_the_placing(void **state)
{
    struct ledger *ledger = ledger_new();
    struct ledger_entry *entry = submit_id(ledger, "a");
    (void)state;

    entry->not_before = (instant){5};
    place(ledger, entry, "w", 7);
    assert_int_equal(entry->not_before.ns, 0);
    entry->wish = WORK_MOVE;
    entry->told = (struct work_number){1, 2};
    entry->deadline = (instant){9};
    ledger_release(ledger, entry, NOW_MS);
    assert_int_equal(entry->wish, WORK_STAY);
    assert_int_equal(entry->told.epoch, 0);
    assert_int_equal(entry->told.count, 0);
    assert_int_equal(entry->deadline.ns, 0);
    ledger_free(ledger);
}

static void what_has_ended_is_final_and_can_be_removed(void **state)
{
    static const enum work_state finals[] = {WORK_COMPLETED, WORK_FAILED, WORK_CANCELLED};
    struct ledger *ledger = ledger_new();
    (void)state;

    for (size_t i = 0; i < 3; i++) {
        struct ledger_entry *entry = submit_id(ledger, "a");

        place(ledger, entry, "w", 7);
        ledger_finish(ledger, entry, finals[i], (int32_t)i, NOW_MS);
        assert_int_equal(entry->state, finals[i]);
        assert_int_equal(entry->code, i);
        assert_null(ledger_place_next(ledger, NULL));
        assert_int_equal(ledger_count(ledger, finals[i]), 1);
        ledger_remove(ledger, entry);
        assert_null(ledger_find(ledger, "a"));
        assert_int_equal(ledger_count(ledger, finals[i]), 0);
    }
    ledger_free(ledger);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_item_that_was_submitted_is_idle),
        cmocka_unit_test(the_same_item_submitted_again_is_the_same_entry),
        cmocka_unit_test(a_placing_has_a_higher_epoch_and_at_least_its_leaders),
        cmocka_unit_test(no_placing_has_an_epoch_that_cannot_be_written),
        cmocka_unit_test(each_end_of_a_placing_is_counted_as_what_it_was),
        cmocka_unit_test(a_service_that_failed_is_placed_again),
        cmocka_unit_test(a_move_clears_what_the_leader_knew_of_the_placing),
        cmocka_unit_test(what_has_ended_is_final_and_can_be_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Entries, their moves, places, the idle ones, keys, findings. */
#include "ledger_tools.h"

static void an_item_that_was_submitted_is_idle(void **state)
{
    struct ledger *ledger = ledger_new();
    struct ledger_entry *entry = submit_id(ledger, "a");

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

    entry->not_before = (instant){5};
    place(ledger, entry, "w", 7);
    assert_int_equal(entry->not_before.ns, 0);
    entry->wish = WORK_MOVE;
    entry->told = (struct work_number){1, 2};
    entry->deadline = (instant){9};
    entry->report = 3;
    entry->reason = 1;
    ledger_release(ledger, entry, NOW_MS);
    assert_int_equal(entry->wish, WORK_STAY);
    assert_int_equal(entry->told.epoch, 0);
    assert_int_equal(entry->told.count, 0);
    assert_int_equal(entry->deadline.ns, 0);
    assert_int_equal(entry->report, 0);
    assert_int_equal(entry->reason, 0);
    ledger_free(ledger);
}

static void what_has_ended_is_final_and_can_be_removed(void **state)
{
    static const enum work_state finals[] = {WORK_COMPLETED, WORK_FAILED, WORK_CANCELLED};
    struct ledger *ledger = ledger_new();

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

/* ---- Moves that the diagram does not have ---------------------------------------------------- */

void __wrap_invariant_failed(const char *text, const char *file, int line);

void __wrap_invariant_failed(const char *text, const char *file, int line)
{
    mock_assert(0, text, file, line);
}

static void an_idle_item_cannot_stop_fail_or_succeed(void **state)
{
    struct ledger *ledger = ledger_new();
    struct ledger_entry *entry = submit_id(ledger, "a");

    expect_assert_failure(ledger_release(ledger, entry, NOW_MS));
    expect_assert_failure(ledger_lose(ledger, entry, NOW_MS));
    expect_assert_failure(ledger_fail(ledger, entry, 1, NOW_MS));
    expect_assert_failure(ledger_finish(ledger, entry, WORK_COMPLETED, 1, NOW_MS));
    expect_assert_failure(ledger_finish(ledger, entry, WORK_FAILED, 1, NOW_MS));
    expect_assert_failure(ledger_finish(ledger, entry, WORK_IDLE, 1, NOW_MS));
    expect_assert_failure(ledger_remove(ledger, entry));
    assert_int_equal(entry->state, WORK_IDLE);
    assert_int_equal(entry->failures + entry->losses, 0);
    assert_int_equal(entry->code, 0);
    ledger_finish(ledger, entry, WORK_CANCELLED, 0, NOW_MS);
    assert_int_equal(entry->state, WORK_CANCELLED);
    ledger_free(ledger);
}

static void an_item_with_a_place_cannot_be_placed_or_removed(void **state)
{
    struct ledger *ledger = ledger_new();
    struct ledger_entry *entry = submit_id(ledger, "a");

    expect_assert_failure(ledger_place(ledger, entry, "w", 0, 1, NOW_MS));
    place(ledger, entry, "w", 7);
    expect_assert_failure(ledger_place(ledger, entry, "w", 7, 1, NOW_MS));
    expect_assert_failure(ledger_finish(ledger, entry, WORK_PROCESSING, 1, NOW_MS));
    expect_assert_failure(ledger_remove(ledger, entry));
    assert_int_equal(entry->epoch, 1);
    ledger_free(ledger);
}

static void an_item_that_has_ended_does_not_move(void **state)
{
    struct ledger *ledger = ledger_new();
    struct ledger_entry *entry = submit_id(ledger, "a");

    place(ledger, entry, "w", 7);
    ledger_finish(ledger, entry, WORK_COMPLETED, 5, NOW_MS);
    expect_assert_failure(ledger_place(ledger, entry, "w", 7, 1, NOW_MS));
    expect_assert_failure(ledger_release(ledger, entry, NOW_MS));
    expect_assert_failure(ledger_lose(ledger, entry, NOW_MS));
    expect_assert_failure(ledger_fail(ledger, entry, 1, NOW_MS));
    expect_assert_failure(ledger_finish(ledger, entry, WORK_CANCELLED, 1, NOW_MS));
    assert_int_equal(entry->state, WORK_COMPLETED);
    assert_int_equal(entry->code, 5);
    ledger_free(ledger);
}

/* ---- The idle ones --------------------------------------------------------------------------- */

/* "b a c": the ids, the first one first. */
static const char *idle_of(const struct ledger *ledger)
{
    static char text[256];
    size_t used = 0;

    text[0] = '\0';
    for (const struct ledger_entry *at = ledger_idle(ledger); at; at = at->next) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", used ? " " : "", at->id);
    }
    return text;
}

static void idle_items_come_by_priority_and_then_as_they_became_idle(void **state)
{
    struct ledger *ledger = ledger_new();
    struct ledger_entry *b;

    assert_string_equal(idle_of(ledger), "");
    (void)submit(ledger, "{'id':'a'}");
    b = submit(ledger, "{'id':'b'}");
    (void)submit(ledger, "{'id':'high','priority':9}");
    assert_string_equal(idle_of(ledger), "high a b");
    (void)submit(ledger, "{'id':'low','priority':-9}");
    (void)submit(ledger, "{'id':'c'}");
    (void)submit(ledger, "{'id':'also-high','priority':9}");
    (void)submit(ledger, "{'id':'higher','priority':10}");
    assert_string_equal(idle_of(ledger), "higher high also-high a b c low");
    place(ledger, b, "w", 7);
    assert_string_equal(idle_of(ledger), "higher high also-high a c low");
    ledger_release(ledger, b, NOW_MS + 1);
    (void)submit(ledger, "{'id':'d'}"); /* waits for longer than b */
    assert_string_equal(idle_of(ledger), "higher high also-high a c d b low");
    ledger_free(ledger);
}

static void an_unsorted_item_that_leaves_keeps_the_others_in_order(void **state)
{
    struct ledger *ledger = ledger_new();

    (void)submit(ledger, "{'id':'a'}");
    (void)submit(ledger, "{'id':'b','priority':1}");
    (void)submit(ledger, "{'id':'c','priority':2}");
    place(ledger, ledger_find(ledger, "b"), "w", 7);
    assert_string_equal(idle_of(ledger), "c a");
    (void)submit(ledger, "{'id':'d','priority':3}");
    place(ledger, ledger_find(ledger, "d"), "w", 7);
    assert_string_equal(idle_of(ledger), "c a");
    ledger_free(ledger);
}

static void an_item_that_becomes_known_gets_its_priority(void **state)
{
    struct ledger *ledger = ledger_new();
    struct ledger *from = ledger_new();

    (void)submit(from, "{'id':'a'}");
    (void)submit(from, "{'id':'b'}");
    copy_buckets(from, ledger);
    assert_null(ledger_find(ledger, "b")->item);
    (void)submit(ledger, "{'id':'b','priority':2}");
    (void)submit(ledger, "{'id':'a','priority':1}");
    assert_string_equal(idle_of(ledger), "b a");
    assert_int_equal(ledger_changed_bucket(ledger, 0), -1); /* nothing that is stored changed */
    ledger_free(from);
    ledger_free(ledger);
}

/* ---- Places ---------------------------------------------------------------------------------- */

static void a_place_is_a_session_and_there_while_it_holds_an_item(void **state)
{
    struct ledger *ledger = ledger_new();
    struct ledger_entry *a = submit_id(ledger, "a"), *b = submit_id(ledger, "b");
    struct ledger_place *found;

    assert_null(ledger_place_next(ledger, NULL));
    place(ledger, a, "w", 7);
    place(ledger, b, "w", 7);
    found = ledger_place_find(ledger, "w", 7);
    assert_non_null(found);
    assert_ptr_equal(a->place, found);
    assert_int_equal(ledger_place_count(found), 2);
    assert_ptr_equal(ledger_place_entries(found), a);
    assert_ptr_equal(a->next, b);
    assert_null(b->next);
    assert_null(ledger_place_find(ledger, "w", 8));
    assert_null(ledger_place_find(ledger, "v", 7));
    assert_ptr_equal(ledger_place_next(ledger, NULL), found);
    assert_null(ledger_place_next(ledger, found));
    ledger_lose(ledger, a, NOW_MS);
    assert_int_equal(ledger_place_count(found), 1);
    ledger_lose(ledger, b, NOW_MS);
    assert_null(ledger_place_find(ledger, "w", 7));
    ledger_free(ledger);
}

/* The next id that is as long as an id can be, and of bucket 5. */
static const char *long_id(void)
{
    static char id[WORK_ID_MAX];
    static int tried;

    do {
        (void)snprintf(id, sizeof(id), "%0127d", tried++);
    } while (ledger_bucket_of(id) != 5);
    return id;
}

/* Placed, with the longest of all that is written. */
static int submit_longest(struct ledger *ledger)
{
    char text[2 * WORK_ID_MAX], worker[BATON_NAME_MAX];
    struct ledger_entry *entry = NULL;
    struct work_item *item;
    int code;

    (void)snprintf(text, sizeof(text), "{'id':'%s'}", long_id());
    (void)snprintf(worker, sizeof(worker), "%063d", 0);
    item = make_item(text);
    code = ledger_submit(ledger, item, INT64_MIN, &entry);
    if (code == BATON_OK) {
        assert_int_equal(
            ledger_place(ledger, entry, worker, WORK_NUMBER_MAX, WORK_NUMBER_MAX, INT64_MIN),
            BATON_OK);
        entry->code = INT32_MIN;
        entry->attempt = entry->failures = entry->losses = UINT32_MAX;
    }
    work_item_unref(item);
    return code;
}

static void a_bucket_is_full_before_it_is_too_long_to_be_stored(void **state)
{
    struct ledger *ledger = ledger_new(), *copy = ledger_new();
    int count = 0, code;

    while ((code = submit_longest(ledger)) == BATON_OK) {
        count++;
    }
    assert_int_equal(code, BATON_EFULL);
    assert_int_equal(ledger_count(ledger, WORK_PROCESSING), count);
    assert_int_equal(ledger_count(ledger, WORK_IDLE), 0);
    assert_true(count > 300);
    copy_buckets(ledger, copy);
    assert_true(ledger_equal(ledger, copy));
    ledger_free(copy);
    ledger_free(ledger);
}

/* ---- Keys ------------------------------------------------------------------------------------ */

static const char *located(const struct ledger *ledger, const char *key)
{
    const struct ledger_entry *entry = ledger_locate(ledger, key);

    return entry ? entry->id : "nowhere";
}

static void claim_keys(struct ledger *ledger, const char *id, const char *const *keys)
{
    const struct ledger_entry *entry = ledger_find(ledger, id);
    const struct work_claim what = {.id = (char *)id, .epoch = entry->epoch, .keys = (char **)keys};
    enum ledger_verdict verdict;

    assert_int_equal(ledger_claim(ledger, ledger_place_worker(entry->place),
                                  ledger_place_session(entry->place), &what, false, NOW_MS,
                                  &verdict),
                     BATON_OK);
    assert_int_equal(verdict, LEDGER_AGREES);
}

static void a_key_leads_to_the_item_that_maps_it(void **state)
{
    struct ledger *ledger = ledger_new();
    struct ledger_entry *a = submit(ledger, "{'id':'a','keys':['ball','box']}");

    assert_string_equal(located(ledger, "ball"), "a");
    assert_string_equal(located(ledger, "box"), "a");
    assert_string_equal(located(ledger, "cone"), "nowhere");
    place(ledger, a, "w", 7);
    assert_string_equal(located(ledger, "ball"), "a");
    ledger_finish(ledger, a, WORK_COMPLETED, 0, NOW_MS);
    assert_string_equal(located(ledger, "ball"), "nowhere");
    ledger_remove(ledger, a);
    assert_string_equal(located(ledger, "ball"), "nowhere");
    ledger_free(ledger);
}

static void a_workers_keys_count_while_its_placing_lasts(void **state)
{
    static const char *const moved[] = {"cone", "box", NULL}, *const none[] = {NULL};
    struct ledger *ledger = ledger_new();
    struct ledger_entry *a = submit(ledger, "{'id':'a','keys':['ball','box']}");

    place(ledger, a, "w", 7);
    claim_keys(ledger, "a", moved);
    assert_string_equal(located(ledger, "cone"), "a");
    assert_string_equal(located(ledger, "box"), "a");
    assert_string_equal(located(ledger, "ball"), "nowhere");
    claim_keys(ledger, "a", none);
    assert_string_equal(located(ledger, "box"), "nowhere");
    claim_keys(ledger, "a", NULL);
    assert_string_equal(located(ledger, "ball"), "a");
    claim_keys(ledger, "a", moved);
    ledger_release(ledger, a, NOW_MS);
    assert_string_equal(located(ledger, "cone"), "nowhere");
    assert_string_equal(located(ledger, "ball"), "a");
    ledger_free(ledger);
}

static void of_two_that_map_a_key_the_higher_epoch_counts(void **state)
{
    static const char *const ball[] = {"ball", NULL};
    struct ledger *ledger = ledger_new();
    struct ledger_entry *a = submit(ledger, "{'id':'a','keys':['ball','ball']}");
    struct ledger_entry *b = submit_id(ledger, "b");

    assert_int_equal(ledger_place(ledger, a, "w", 7, 5, NOW_MS), BATON_OK);
    assert_int_equal(ledger_place(ledger, b, "w", 7, 6, NOW_MS), BATON_OK);
    assert_string_equal(located(ledger, "ball"), "a");
    claim_keys(ledger, "b", ball);
    assert_string_equal(located(ledger, "ball"), "b");
    ledger_lose(ledger, b, NOW_MS);
    assert_string_equal(located(ledger, "ball"), "a");
    ledger_free(ledger);
}

/* ---- Findings -------------------------------------------------------------------------------- */

static bool is_not_v(void *userdata, const char *worker, uint64_t session)
{
    (*(int *)userdata)++;
    return strcmp(worker, "v") != 0;
}

static struct ledger_findings findings_of(const struct ledger *ledger)
{
    struct ledger_findings found;
    int asked = 0;

    ledger_validate(ledger, is_not_v, &asked, &found);
    return found;
}

static void items_of_ended_and_unknown_sessions_are_orphans(void **state)
{
    struct ledger *ledger = ledger_new();

    place(ledger, submit_id(ledger, "a"), "w", 7);
    assert_int_equal(findings_of(ledger).orphans, 0);
    place(ledger, submit_id(ledger, "b"), "v", 7);
    place(ledger, submit_id(ledger, "c"), "v", 7);
    assert_int_equal(findings_of(ledger).orphans, 2);
    assert_int_equal(ledger_end_sessions(ledger, "w", 7), BATON_OK);
    assert_int_equal(findings_of(ledger).orphans, 3);
    ledger_free(ledger);
}

static void what_lacks_its_item_and_has_not_ended_is_found(void **state)
{
    struct ledger *from = ledger_new(), *ledger = ledger_new();

    (void)submit_id(from, "a");
    (void)submit_id(from, "b");
    ledger_finish(from, submit_id(from, "c"), WORK_CANCELLED, 0, NOW_MS);
    copy_buckets(from, ledger);
    assert_int_equal(findings_of(ledger).without_item, 2);
    (void)submit_id(ledger, "a");
    assert_int_equal(findings_of(ledger).without_item, 1);
    ledger_free(from);
    ledger_free(ledger);
}

static void claims_that_lose_and_win_are_counted(void **state)
{
    struct ledger *ledger = ledger_new();
    struct ledger_findings found;

    (void)submit_id(ledger, "a");
    assert_int_equal(claim(ledger, "w", 7, "a", 5), LEDGER_ADOPTED);
    assert_int_equal(claim(ledger, "v", 8, "a", 4), LEDGER_STALE);   /* two copies */
    assert_int_equal(claim(ledger, "w", 7, "a", 4), LEDGER_STALE);   /* its own earlier one */
    assert_int_equal(claim(ledger, "v", 8, "a", 6), LEDGER_ADOPTED); /* two copies */
    assert_int_equal(ledger_end_sessions(ledger, "w", 7), BATON_OK);
    assert_int_equal(claim(ledger, "w", 7, "a", 9), LEDGER_STALE);
    found = findings_of(ledger);
    assert_int_equal(found.adopted, 2);
    assert_int_equal(found.double_claims, 2);
    assert_int_equal(found.stale_claims, 2);
    ledger_free(ledger);
}

static void keys_without_an_item_or_with_two_are_lost(void **state)
{
    struct ledger *ledger = ledger_new();
    struct ledger_entry *a = submit(ledger, "{'id':'a','keys':['ball','box','ball']}");

    assert_int_equal(findings_of(ledger).lost_mappings, 0);
    (void)submit(ledger, "{'id':'b','keys':['ball']}");
    assert_int_equal(findings_of(ledger).lost_mappings, 1);
    ledger_finish(ledger, a, WORK_CANCELLED, 0, NOW_MS);
    assert_int_equal(findings_of(ledger).lost_mappings, 1); /* the box */
    ledger_remove(ledger, a);
    assert_int_equal(findings_of(ledger).lost_mappings, 0);
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
        cmocka_unit_test(an_idle_item_cannot_stop_fail_or_succeed),
        cmocka_unit_test(an_item_with_a_place_cannot_be_placed_or_removed),
        cmocka_unit_test(an_item_that_has_ended_does_not_move),
        cmocka_unit_test(idle_items_come_by_priority_and_then_as_they_became_idle),
        cmocka_unit_test(an_unsorted_item_that_leaves_keeps_the_others_in_order),
        cmocka_unit_test(an_item_that_becomes_known_gets_its_priority),
        cmocka_unit_test(a_place_is_a_session_and_there_while_it_holds_an_item),
        cmocka_unit_test(a_bucket_is_full_before_it_is_too_long_to_be_stored),
        cmocka_unit_test(a_key_leads_to_the_item_that_maps_it),
        cmocka_unit_test(a_workers_keys_count_while_its_placing_lasts),
        cmocka_unit_test(of_two_that_map_a_key_the_higher_epoch_counts),
        cmocka_unit_test(items_of_ended_and_unknown_sessions_are_orphans),
        cmocka_unit_test(what_lacks_its_item_and_has_not_ended_is_found),
        cmocka_unit_test(claims_that_lose_and_win_are_counted),
        cmocka_unit_test(keys_without_an_item_or_with_two_are_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

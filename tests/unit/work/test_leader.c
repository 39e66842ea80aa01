/* The leader of a pool, rule by rule. */
#include "talk.h"

#include <stdio.h>
#include <string.h>

static void nothing_is_told_before_it_is_stored(void **state)
{
    struct talk *talk = *state;

    (void)talk_report(talk, "w1", 7, 0, "");
    talk->withholds = true;
    assert_string_equal(talk_submit(talk, "x", "{\"id\":\"a\"}"), "put b");
    assert_string_equal(talk_later(talk, 10), "");
    talk->withholds = false;
}

static void a_lost_assignment_is_sent_again(void **state)
{
    struct talk *talk = *state;

    talk_run_a(talk);
    assert_string_equal(talk_report(talk, "w1", 7, talk->told - 1, ""), ""); /* still under way */
    talk->ms += REPORT_MS;
    assert_string_equal(talk_report(talk, "w1", 7, talk->told - 1, ""), "assign a/100");
    assert_string_equal(talk_report(talk, "w1", 7, talk->told, "a/100"), "");
}

static void what_is_gone_is_placed_anew_and_acknowledged_once_that_is_stored(void **state)
{
    struct talk *talk = *state;
    char key[8];

    (void)snprintf(key, sizeof(key), "b/%02u", ledger_bucket_of("a"));
    talk_run_a(talk);
    talk->withholds = true;
    assert_string_equal(talk_report(talk, "w1", 7, talk->told, "a/100-"), "put b");
    assert_string_equal(talk_report(talk, "w1", 7, talk->told, "a/100-"), "");
    talk->withholds = false;
    talk_reply(talk, key, BATON_OK);
    assert_string_equal(talk_all_of(talk), "assign a/101");
    assert_string_equal(talk_report(talk, "w1", 7, talk->told - 1, "a/100-"), "ack a/100");
    assert_int_equal(talk_counters(talk)->lost, 1);
}

static void a_service_that_is_gone_from_where_it_is_not_to_be_moves(void **state)
{
    struct talk *talk = *state;

    (void)talk_report(talk, "w1", 7, 0, "");
    (void)talk_submit(talk, "x", "{\"id\":\"a\",\"kind\":\"service\"}");
    (void)talk_report(talk, "w2", 8, 0, "");
    talk_write_key(talk, "d/w1", "", 0);
    talk_tell_key(talk, "d/w1");
    assert_string_equal(talk_all_of(talk), "stop a/100");
    assert_string_equal(talk_report(talk, "w1", 7, talk->told, "a/100-"), "put b, assign a/101");
    assert_int_equal(talk_counters(talk)->migrations, 1);
}

static void a_result_is_stored_then_the_ledger_then_acknowledged(void **state)
{
    talk_run_a(*state);
    assert_string_equal(talk_done(*state, "w1", 7, "a", 100, true), "put r, put b, ack a/100");
    assert_int_equal(talk_state_of(*state, "a"), WORK_COMPLETED);
    assert_string_equal(talk_done(*state, "w1", 7, "a", 100, true),
                        "ack a/100"); /* the ack was lost */
    assert_int_equal(talk_counters(*state)->completed, 1);
}

static void
a_result_that_is_stored_after_the_end_of_its_session_is_that_of_the_next_attempt(void **state)
{
    struct talk *talk = *state;

    talk_run_a(talk);
    talk->withholds = true;
    assert_string_equal(talk_done(talk, "w1", 7, "a", 100, true), "put r");
    talk->withholds = false;
    assert_string_equal(talk_granted(talk, "w1", 8, true), "leave w1, put b");
    talk_reply(talk, "r/a", BATON_OK);
    assert_string_equal(talk_all_of(talk), "");
    assert_int_equal(talk_state_of(talk, "a"), WORK_IDLE);
    assert_string_equal(talk_report(talk, "w2", 9, 0, ""), "enter w2, put b, assign a/101");
    assert_string_equal(talk_done(talk, "w2", 9, "a", 101, true), "put r, put b, ack a/101");
    assert_int_equal(talk_state_of(talk, "a"), WORK_COMPLETED);
}

static void a_result_of_an_earlier_placing_is_refused(void **state)
{
    struct talk *talk = *state;

    talk_run_a(talk);
    (void)talk_report(talk, "w2", 8, 0, "");
    assert_string_equal(talk_granted(talk, "w1", 9, true), "leave w1, put b, assign a/101");
    (void)talk_report(talk, "w1", 10, 0, "");
    assert_string_equal(talk_done(talk, "w1", 10, "a", 100, true), "ack a/100");
    assert_int_equal(talk_counters(talk)->refused_results, 1);
    assert_int_equal(talk_state_of(talk, "a"), WORK_PROCESSING);
}

static void silence_moves_nothing_and_the_end_of_the_session_everything(void **state)
{
    struct talk *talk = *state;

    talk_run_a(talk);
    for (int i = 0; i < 100; i++) {
        assert_string_equal(talk_later(talk, REPORT_MS), "");
        if (i == 0) {
            (void)talk_report(talk, "w2", 8, 0, "");
        }
    }
    (void)talk_report(talk, "w2", 8, 0, "");
    assert_string_equal(talk_granted(talk, "w1", 9, true), "leave w1, put b, assign a/101");
    assert_int_equal(talk_counters(talk)->lost, 1);
    assert_int_equal(talk_counters(talk)->failed_workers, 1);
}

static void a_later_session_proves_the_end_of_an_earlier_one(void **state)
{
    talk_run_a(*state);
    assert_string_equal(talk_report(*state, "w1", 9, 0, ""), "put b, assign a/101");
}

static void of_two_leaders_the_second_to_write_reads_what_the_first_did(void **state)
{
    struct talk *talk = *state;
    const struct ledger_entry *entry;
    struct ledger *others = ledger_new();
    struct buffer buffer;
    char key[8];

    (void)talk_report(talk, "w1", 7, 0, "");
    talk->code = BATON_ECONFLICT;
    assert_string_equal(talk_submit(talk, "x", "{\"id\":\"a\"}"), "put b, read b");
    talk->code = BATON_OK;

    /* The other one has placed it on w2. */
    buffer_init(&buffer, LEDGER_BUCKET_MAX);
    entry = ledger_find(work_leader_ledger(talk->leader), "a");
    {
        struct ledger_entry *their;

        assert_int_equal(ledger_submit(others, entry->item, 0, &their), BATON_OK);
        assert_int_equal(ledger_place(others, their, "w2", 8, EPOCH + 1, 0), BATON_OK);
    }
    ledger_encode(others, ledger_bucket_of("a"), &buffer);
    (void)snprintf(key, sizeof(key), "b/%02u", ledger_bucket_of("a"));
    talk_write_key(talk, key, buffer.data, buffer.bytes);
    talk_tell_key(talk, key);
    assert_string_equal(talk_all_of(talk), "enter w2, ask all");
    entry = ledger_find(work_leader_ledger(talk->leader), "a");
    assert_int_equal(entry->state, WORK_PROCESSING);
    assert_string_equal(ledger_place_worker(entry->place), "w2");
    assert_int_equal(entry->epoch, EPOCH + 1);
    buffer_fini(&buffer);
    ledger_free(others);
}

static void a_bucket_that_cannot_be_read_is_neither_written_nor_told_of(void **state)
{
    static const char later_format[] = "{\"format\":2}", empty[] = "{\"format\":1,\"items\":[]}";
    struct talk *talk = *state;
    char key[8];

    (void)talk_report(talk, "w1", 7, 0, "");
    talk->code = BATON_ECONFLICT;
    assert_string_equal(talk_submit(talk, "x", "{\"id\":\"a\"}"), "put b, read b");
    talk->code = BATON_OK;
    (void)snprintf(key, sizeof(key), "b/%02u", ledger_bucket_of("a"));
    talk_write_key(talk, key, later_format, strlen(later_format)); /* where it may be, who knows */
    talk_tell_key(talk, key);
    assert_string_equal(talk_all_of(talk), "");
    assert_string_equal(talk_report(talk, "w1", 7, 1, ""), "");
    assert_int_equal(talk_counters(talk)->odd_values, 1);
    talk_write_key(talk, key, empty, strlen(empty));
    talk_tell_read(talk, key);
    assert_string_equal(talk_all_of(talk), "read s"); /* perhaps somebody has removed it */
    talk_tell_read(talk, "s/x");
    assert_string_equal(talk_all_of(talk), "put b, assign a/101");
}

static void a_service_moves_once_its_worker_has_stopped_it(void **state)
{
    struct talk *talk = *state;
    uint64_t stopped;

    (void)talk_report(talk, "w1", 7, 0, "");
    (void)talk_submit(talk, "x", "{\"id\":\"a\",\"kind\":\"service\"}");
    (void)talk_report(talk, "w2", 8, 0, "");
    talk_write_key(talk, "d/w1", "", 0);
    talk_tell_key(talk, "d/w1");
    assert_string_equal(talk_all_of(talk), "stop a/100");
    stopped = talk->told;
    assert_string_equal(talk_report(talk, "w1", 7, stopped - 1, ""), ""); /* older than the order */
    assert_string_equal(talk_report(talk, "w1", 7, stopped, "a/100"), "");
    assert_string_equal(talk_report(talk, "w1", 7, stopped, ""), "put b, assign a/101");
    assert_int_equal(talk_counters(talk)->migrations, 1);
}

static void a_job_is_not_moved(void **state)
{
    struct talk *talk = *state;

    talk_run_a(talk);
    (void)talk_report(talk, "w2", 8, 0, "");
    talk_write_key(talk, "d/w1", "", 0);
    talk_tell_key(talk, "d/w1");
    assert_string_equal(talk_all_of(talk), "");
}

static void a_failed_job_is_tried_again_after_its_backoff(void **state)
{
    struct talk *talk = *state;

    (void)talk_report(talk, "w1", 7, 0, "");
    (void)talk_submit(talk, "x", "{\"id\":\"a\",\"retries\":1,\"backoff_ms\":100}");
    assert_string_equal(talk_done(talk, "w1", 7, "a", 100, false), "put b, ack a/100");
    assert_string_equal(talk_later(talk, 99), "");
    assert_string_equal(talk_done(talk, "w1", 7, "a", 100, false),
                        "ack a/100"); /* no second failure */
    assert_string_equal(talk_later(talk, 1), "put b, assign a/101");
    assert_string_equal(talk_done(talk, "w1", 7, "a", 101, false), "put r, put b, ack a/101");
    assert_int_equal(talk_state_of(talk, "a"), WORK_FAILED);
    assert_int_equal(talk_counters(talk)->retried, 1);
}

static void an_attempt_that_takes_too_long_is_stopped_and_counts_as_failed(void **state)
{
    struct talk *talk = *state;

    (void)talk_report(talk, "w1", 7, 0, "");
    (void)talk_submit(talk, "x", "{\"id\":\"a\",\"timeout_ms\":1500,\"retries\":1}");
    (void)talk_report(talk, "w1", 7, talk->told, "a/100");
    assert_string_equal(talk_later(talk, REPORT_MS), "");
    assert_string_equal(talk_later(talk, REPORT_MS), "stop a/100");
    assert_string_equal(talk_report(talk, "w1", 7, talk->told, ""), "put b");
    assert_int_equal(talk_counters(talk)->timeouts, 1);
    assert_int_equal(talk_counters(talk)->retried, 1);
    assert_string_equal(talk_later(talk, 1000), "put b, assign a/101"); /* after the backoff */
}

static void a_cancelled_job_stops_and_the_request_goes_when_that_is_stored(void **state)
{
    struct talk *talk = *state;

    talk_run_a(talk);
    talk_write_key(talk, "c/a", "", 0);
    talk_tell_key(talk, "c/a");
    assert_string_equal(talk_all_of(talk), "stop a/100");
    assert_string_equal(talk_report(talk, "w1", 7, talk->told, ""), "put b, delete c/a");
    assert_int_equal(talk_state_of(talk, "a"), WORK_CANCELLED);
}

static void an_item_of_an_id_that_was_used_before_gets_a_higher_epoch(void **state)
{
    struct talk *talk = *state;

    talk_run_a(talk);
    (void)talk_done(talk, "w1", 7, "a", 100, true);
    (void)talk_later(talk, (int64_t)KEEP_S * 1000 + 20000);
    (void)talk_tell_rest(talk, "a");
    assert_null(ledger_find(work_leader_ledger(talk->leader), "a"));
    (void)talk_report(talk, "w1", 7, 0, "");
    assert_string_equal(talk_submit(talk, "y", "{\"id\":\"a\"}"), "put b, assign a/101");
}

/* "s/NAME" with items whose ids are of one bucket, from the `first` one on. */
static const char *submit_crowd(struct talk *talk, const char *name, unsigned first, unsigned count)
{
    char key[WORK_ID_MAX], id[24];
    json_t *items = json_array(), *all = json_pack("{s:o}", "items", items);
    char *text;

    for (unsigned i = 0, found = 0; found < first + count; i++) {
        (void)snprintf(id, sizeof(id), "crowd-%u", i);
        if (ledger_bucket_of(id) == 0 && found++ >= first) {
            (void)json_array_append_new(items, json_pack("{s:s}", "id", id));
        }
    }
    text = json_dumps(all, JSON_COMPACT);
    (void)snprintf(key, sizeof(key), "s/%s", name);
    talk_write_key(talk, key, text, strlen(text));
    talk_tell_key(talk, key);
    json_decref(all);
    free(text);
    return talk_all_of(talk);
}

/* There are neither results nor checkpoints of the first ones. */
static void tell_of_crowd(struct talk *talk, unsigned count)
{
    char key[32];

    for (unsigned i = 0, found = 0; found < count; i++) {
        (void)snprintf(key, sizeof(key), "r/crowd-%u", i);
        if (ledger_bucket_of(key + 2) == 0) {
            found++;
            work_leader_read(talk->leader, key, NULL, 0, 0, talk_now(talk), talk->ms);
            key[0] = 'k';
            work_leader_read(talk->leader, key, NULL, 0, 0, talk_now(talk), talk->ms);
        }
    }
}

static void an_item_without_room_waits_and_what_has_ended_makes_some(void **state)
{
    struct talk *talk = *state;
    const struct ledger *ledger = work_leader_ledger(talk->leader);
    size_t before;

    (void)submit_crowd(talk, "first", 0, 600);
    before = ledger_count(ledger, WORK_IDLE);
    assert_in_range(before, 300, 599);
    talk_write_key(talk, "s/first", NULL, 0); /* all of it is cancelled */
    talk_tell_key(talk, "s/first");
    (void)talk_all_of(talk);
    talk_tell_read(talk, "ledger"); /* it is still there, so the state was not lost */
    (void)talk_all_of(talk);
    assert_int_equal(ledger_count(ledger, WORK_CANCELLED), before);
    (void)submit_crowd(talk, "second", 600, 10);
    assert_int_equal(ledger_count(ledger, WORK_IDLE), 0);
    (void)talk_later(talk, 10000);
    assert_int_equal(ledger_count(ledger, WORK_IDLE), 0);
    (void)talk_later(talk, 10000);
    tell_of_crowd(talk, 600);
    assert_int_equal(ledger_count(ledger, WORK_IDLE), 10);
}

static void elections_of_workers_wait_until_what_can_be_placed_at_once_is_stored(void **state)
{
    static const char submission[] = "{\"items\":[{\"id\":\"c\"}]}";
    struct talk *talk = *state;
    char key[8];

    (void)snprintf(key, sizeof(key), "b/%02u", ledger_bucket_of("c"));
    talk_run_a(talk);
    talk_write_key(talk, "s/y", submission, strlen(submission));
    talk_lead(talk, EPOCH + 50);
    talk_load(talk);
    talk->withholds = true;
    assert_string_equal(talk_all_of(talk), "ask all");
    assert_string_equal(talk_report(talk, "w1", 7, 0, "a/100"), "put b");
    assert_false(work_leader_is_settled(talk->leader));
    talk->withholds = false;
    talk_reply(talk, key, BATON_OK);
    assert_string_equal(talk_all_of(talk), "enter w1, assign c/150");
    assert_true(work_leader_is_settled(talk->leader));
}

static void elections_of_workers_do_not_wait_long(void **state)
{
    struct talk *talk = *state;

    talk_run_a(talk);
    talk_lead(talk, EPOCH + 50);
    talk_load(talk);
    assert_string_equal(talk_all_of(talk), "ask all");
    assert_string_equal(talk_later(talk, 19), "");
    assert_string_equal(talk_later(talk, 1), "enter w1");
}

static void the_next_leader_goes_on_where_the_ledger_stands(void **state)
{
    struct talk *talk = *state;

    talk_run_a(talk);
    talk_lead(talk, EPOCH + 50);
    talk_load(talk);
    assert_string_equal(talk_all_of(talk), "ask all");
    assert_false(work_leader_is_ready(talk->leader));
    assert_string_equal(talk_report(talk, "w1", 7, 0, "a/100"), "enter w1");
    assert_true(work_leader_is_ready(talk->leader));
    assert_string_equal(talk_submit(talk, "y", "{\"id\":\"c\"}"), "put b, assign c/150");
}

static void a_copy_that_the_ledger_has_elsewhere_is_stopped(void **state)
{
    struct talk *talk = *state;

    talk_run_a(talk);
    assert_string_equal(talk_report(talk, "w2", 8, 0, "a/99"), "enter w2, stop a/99");
    assert_string_equal(talk_report(talk, "w2", 8, talk->told, "z/99"), "put b");
    assert_string_equal(talk_report(talk, "w2", 8, talk->told, "z/99"), "stop z/99");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, talk_begin, talk_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_told_before_it_is_stored),
        TEST(a_lost_assignment_is_sent_again),
        TEST(what_is_gone_is_placed_anew_and_acknowledged_once_that_is_stored),
        TEST(a_service_that_is_gone_from_where_it_is_not_to_be_moves),
        TEST(a_result_is_stored_then_the_ledger_then_acknowledged),
        TEST(a_result_that_is_stored_after_the_end_of_its_session_is_that_of_the_next_attempt),
        TEST(a_result_of_an_earlier_placing_is_refused),
        TEST(silence_moves_nothing_and_the_end_of_the_session_everything),
        TEST(a_later_session_proves_the_end_of_an_earlier_one),
        TEST(of_two_leaders_the_second_to_write_reads_what_the_first_did),
        TEST(a_bucket_that_cannot_be_read_is_neither_written_nor_told_of),
        TEST(a_service_moves_once_its_worker_has_stopped_it),
        TEST(a_job_is_not_moved),
        TEST(a_failed_job_is_tried_again_after_its_backoff),
        TEST(an_attempt_that_takes_too_long_is_stopped_and_counts_as_failed),
        TEST(a_cancelled_job_stops_and_the_request_goes_when_that_is_stored),
        TEST(an_item_of_an_id_that_was_used_before_gets_a_higher_epoch),
        TEST(an_item_without_room_waits_and_what_has_ended_makes_some),
        TEST(the_next_leader_goes_on_where_the_ledger_stands),
        TEST(elections_of_workers_wait_until_what_can_be_placed_at_once_is_stored),
        TEST(elections_of_workers_do_not_wait_long),
        TEST(a_copy_that_the_ledger_has_elsewhere_is_stopped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

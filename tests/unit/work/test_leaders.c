/* Schedules of several leaders and of late replies: most were found by the simulator. */
#include "talk.h"

#include <stdio.h>
#include <string.h>

#define OTHER "o53" /* in the same bucket as "a" */

/* The leader reads the bucket, and this is in it. */
static const char *reads(struct talk *talk, const char *id, const char *value)
{
    char key[8];

    talk_bucket_key(key, id);
    talk_write_key(talk, key, value, value ? strlen(value) : 0);
    talk_tell_read(talk, key);
    return talk_all_of(talk);
}

static void an_item_of_an_earlier_leader_is_placed_anew_if_its_worker_lacks_it(void **state)
{
    struct talk *talk = *state;

    talk_run_a(talk);
    talk_lead(talk, EPOCH + 50);
    talk_load(talk);
    assert_string_equal(talk_all_of(talk), "ask all");
    /* It may have ended there, as the leader before may know: it is not sent again. */
    assert_string_equal(talk_report(talk, "w1", 7, 0, ""), "enter w1");
    assert_string_equal(talk_later(talk, REPORT_MS), "ask all");
}

static void an_item_that_is_absent_after_the_ask_is_placed_in_a_higher_epoch(void **state)
{
    struct talk *talk = *state;

    talk_run_a(talk);
    assert_string_equal(talk_report(talk, "w1", 7, talk->told, ""), "put b, assign a/101");
}

static void workers_are_asked_while_all_is_read_and_what_they_reply_then_counts(void **state)
{
    struct talk *talk = *state;

    talk_run_a(talk);
    talk_lead(talk, EPOCH + 50);
    talk_tell_key(talk, "ledger");
    assert_string_equal(talk_all_of(talk), "ask all");
    assert_string_equal(talk_report(talk, "w1", 7, talk->told, ""), "");
    talk_load(talk);
    assert_string_equal(talk_all_of(talk), "put b, enter w1, assign a/150");
}

static void a_report_that_came_before_all_was_read_and_knows_no_ask_lacks_nothing(void **state)
{
    struct talk *talk = *state;

    talk_run_a(talk);
    talk_lead(talk, EPOCH + 50);
    talk_tell_key(talk, "ledger");
    assert_string_equal(talk_all_of(talk), "ask all");
    assert_string_equal(talk_report(talk, "w1", 7, 0, ""), "");
    talk_load(talk);
    assert_string_equal(talk_all_of(talk), "enter w1");
    assert_int_equal(talk_state_of(talk, "a"), WORK_PROCESSING);
}

static void workers_are_asked_again_for_their_items_if_a_bucket_is_missing(void **state)
{
    struct talk *talk = *state;
    char key[8];

    talk_run_a(talk);
    (void)talk_submit(talk, "y", "{\"id\":\"c\"}");
    talk_bucket_key(key, "a");
    talk_write_key(talk, key, NULL, 0);
    talk_lead(talk, EPOCH + 50);
    talk_tell_key(talk, "ledger");
    assert_string_equal(talk_all_of(talk), "ask all");
    talk_load(talk);
    assert_string_equal(talk_all_of(talk), "put l, read s, read s, ask all in full");
}

static void a_placing_of_another_leader_is_not_sent_though_it_looks_like_ours(void **state)
{
    struct talk *talk = *state;

    (void)talk_report(talk, "w1", 7, 0, "");
    talk->code = BATON_ECONFLICT;
    assert_string_equal(talk_submit(talk, "x", "{\"id\":\"a\"}"), "put b, read b");
    talk->code = BATON_OK;
    assert_string_equal(reads(talk, "a",
                              "{\"format\":1,\"items\":[[\"a\",\"processing\",\"w1\",7,100,1,0,0,0,"
                              "1000,1000]]}"),
                        "ask all");
    assert_string_equal(talk_report(talk, "w1", 7, talk->told, "a/100"), "");
}

static void a_placing_that_may_be_stored_late_is_followed_by_one_of_a_higher_epoch(void **state)
{
    struct talk *talk = *state;

    (void)talk_report(talk, "w1", 7, 0, "");
    talk->code = BATON_ETIMEDOUT;
    assert_string_equal(talk_submit(talk, "x", "{\"id\":\"a\"}"), "put b, read b");
    talk->code = BATON_OK;
    assert_string_equal(reads(talk, "a", "{\"format\":1,\"leader\":100,\"items\":[]}"),
                        "put b, assign a/101");
}

static void what_a_worker_has_reported_stays_when_its_bucket_is_read_again(void **state)
{
    struct talk *talk = *state;

    assert_string_equal(talk_submit(talk, "x", "{\"id\":\"a\"}"), "put b");
    talk->code = BATON_ECONFLICT;
    assert_string_equal(talk_report(talk, "w1", 7, 0, "a/150"), "enter w1, put b, read b");
    assert_string_equal(reads(talk, "a", "{\"format\":1,\"leader\":100,\"items\":[]}"),
                        "put b, read b");
    talk->code = BATON_OK; /* and once more */
    assert_string_equal(reads(talk, "a", "{\"format\":1,\"leader\":100,\"items\":[]}"), "put b");
    assert_int_equal(talk_state_of(talk, "a"), WORK_PROCESSING);
}

static void a_failure_that_was_not_stored_is_not_acknowledged(void **state)
{
    struct talk *talk = *state;

    (void)talk_report(talk, "w1", 7, 0, "");
    (void)talk_submit(talk, "x", "{\"id\":\"a\",\"retries\":1}");
    talk->code = BATON_ETIMEDOUT;
    assert_string_equal(talk_done(talk, "w1", 7, "a", 100, false), "put b, read b");
    talk->code = BATON_OK;
    assert_string_equal(reads(talk, "a",
                              "{\"format\":1,\"items\":[[\"a\",\"processing\",\"w1\",7,100,1,0,0,0,"
                              "1000,1000]]}"),
                        "ask all");
    assert_string_equal(talk_report(talk, "w1", 7, talk->told, "a/100!"), "");
    assert_string_equal(talk_done(talk, "w1", 7, "a", 100, false), "put b, ack a/100");
}

static void a_result_is_not_acknowledged_while_the_next_placing_is_not_stored(void **state)
{
    struct talk *talk = *state;

    (void)talk_report(talk, "w1", 7, 0, "");
    (void)talk_submit(talk, "x", "{\"id\":\"a\",\"retries\":1,\"backoff_ms\":0}");
    talk->withholds = true;
    assert_string_equal(talk_done(talk, "w1", 7, "a", 100, false), "put b");
    assert_string_equal(talk_report(talk, "w1", 7, talk->told, "a/100!"), "");
    talk->withholds = false;
}

static void a_bucket_of_a_later_leader_ends_this_one(void **state)
{
    struct talk *talk = *state;

    (void)talk_report(talk, "w1", 7, 0, "");
    talk->code = BATON_ECONFLICT;
    (void)talk_submit(talk, "x", "{\"id\":\"a\"}");
    talk->code = BATON_OK;
    assert_string_equal(reads(talk, "a", "{\"format\":1,\"leader\":101,\"items\":[]}"), "resign");
    assert_string_equal(talk_report(talk, "w1", 7, talk->told, ""), "");
    assert_string_equal(talk_later(talk, REPORT_MS), "");
}

static void a_worker_that_hears_a_later_leader_ends_this_one(void **state)
{
    struct talk *talk = *state;
    struct work_message message = {
        .type = WORK_REPORT, .report = {.worker = "w1", .session = 7, .seen = {EPOCH + 1, 1}}};

    talk_run_a(talk);
    work_leader_hear(talk->leader, &message, (instant){0}, 0);
    assert_string_equal(talk_all_of(talk), "resign");
    assert_int_equal(talk_state_of(talk, "a"), WORK_PROCESSING);
}

static void a_bucket_that_is_gone_ends_the_leader(void **state)
{
    struct talk *talk = *state;

    talk_run_a(talk);
    talk->code = BATON_ECONFLICT;
    assert_string_equal(talk_done(talk, "w1", 7, "a", 100, false), "put r, read r");
    (void)talk_submit(talk, "y", "{\"id\":\"a\"},{\"id\":\"c\"}");
    assert_string_equal(reads(talk, "c", NULL), "resign: lost");
    talk->code = BATON_OK;
}

static void a_request_to_cancel_waits_for_its_item(void **state)
{
    struct talk *talk = *state;

    (void)talk_report(talk, "w1", 7, 0, "");
    talk_write_key(talk, "c/a", "", 0);
    talk_tell_key(talk, "c/a");
    assert_string_equal(talk_all_of(talk), "");
    assert_string_equal(talk_submit(talk, "x", "{\"id\":\"a\"}"), "put b, delete c/a");
    assert_int_equal(talk_state_of(talk, "a"), WORK_CANCELLED);
}

static void a_request_to_cancel_that_comes_again_while_it_is_deleted_is_deleted_too(void **state)
{
    struct talk *talk = *state;
    char bucket[8];

    talk_run_a(talk);
    (void)talk_done(talk, "w1", 7, "a", 100, true);
    talk->withholds = true;
    talk_write_key(talk, "c/a", "", 0);
    talk_tell_key(talk, "c/a");
    assert_string_equal(talk_all_of(talk), "put b"); /* perhaps another leader has removed it */
    talk_bucket_key(bucket, "a");
    talk_reply(talk, bucket, BATON_OK);
    assert_string_equal(talk_all_of(talk), "delete c/a");
    talk_write_key(talk, "c/a", "", 0);
    talk_tell_key(talk, "c/a");
    assert_string_equal(talk_all_of(talk), "");
    talk_reply(talk, "c/a", BATON_OK);
    assert_string_equal(talk_all_of(talk), "put b");
    talk_reply(talk, bucket, BATON_OK);
    assert_string_equal(talk_all_of(talk), "delete c/a");
    talk->withholds = false;
}

static void a_request_to_cancel_what_never_comes_goes_in_the_end(void **state)
{
    struct talk *talk = *state;
    int asked = 0;

    talk_write_key(talk, "c/a", "", 0);
    talk_tell_key(talk, "c/a");
    while (asked < 20 && strcmp(talk_later(talk, 10000), "delete c/a") != 0) {
        asked++;
    }
    assert_in_range(asked, 6, 19);
}

static void a_submission_that_was_deleted_before_it_was_watched_is_looked_for(void **state)
{
    struct talk *talk = *state;

    talk_run_a(talk);
    talk_lead(talk, EPOCH + 50);
    talk_load(talk);
    (void)talk_all_of(talk);
    assert_string_equal(talk_report(talk, "w1", 7, 0, "a/100"), "enter w1");
    assert_non_null(strstr(talk_later(talk, 10000), "read s"));
    talk_tell_read(talk, "s/x"); /* it was there, and is not watched yet */
    talk_write_key(talk, "s/x", NULL, 0);
    assert_non_null(strstr(talk_later(talk, 10000), "read s"));
    talk_tell_read(talk, "s/x");
    assert_string_equal(talk_all_of(talk), "read l");
    talk_tell_read(talk, "ledger");
    assert_string_equal(talk_all_of(talk), "stop a/100");
}

static void a_submission_whose_watch_begins_before_all_is_read_is_deleted_in_its_time(void **state)
{
    struct talk *talk = *state;

    talk_run_a(talk);
    (void)talk_done(talk, "w1", 7, "a", 100, true);
    talk_lead(talk, EPOCH + 50);
    talk_tell_key(talk, "s/x");
    talk_load(talk);
    (void)talk_all_of(talk);
    (void)talk_report(talk, "w1", 7, 0, "");
    assert_string_equal(talk_later(talk, (int64_t)KEEP_S * 1000 + 20000), "put b");
    assert_non_null(strstr(talk_later(talk, 10000), "delete s/x"));
}

static void a_submission_that_is_deleted_and_made_anew_is_another_one(void **state)
{
    struct talk *talk = *state;

    talk_run_a(talk);
    talk_write_key(talk, "s/x", "{\"items\":[{\"id\":\"c\"}]}", 22);
    talk_tell_key(talk, "s/x"); /* of quick changes only the last one is reported */
    assert_string_equal(talk_all_of(talk), "put b, assign c/100, stop a/100");
    (void)talk_report(talk, "w1", 7, talk->told, "c/100");
    assert_int_equal(talk_state_of(talk, "a"), WORK_CANCELLED);
    (void)talk_later(talk, (int64_t)KEEP_S * 1000 + 20000);
    (void)talk_tell_rest(talk, "a");
    assert_null(ledger_find(work_leader_ledger(talk->leader), "a"));
}

/* For as long as a watch may be late: four leases of a worker. */
static void wait_for_watches(struct talk *talk)
{
    for (int64_t ms = 0; ms < (int64_t)4 * LEASE_MS; ms += 10000) {
        (void)talk_later(talk, 10000);
    }
}

static void a_late_notice_of_a_submission_that_was_deleted_starts_nothing(void **state)
{
    struct talk *talk = *state;
    uint64_t revision;

    talk_run_a(talk);
    revision = talk_key_of(talk, "s/x")->revision;
    (void)talk_done(talk, "w1", 7, "a", 100, true);
    (void)talk_later(talk, (int64_t)KEEP_S * 1000 + 20000);
    (void)talk_tell_rest(talk, "a");
    assert_null(ledger_find(work_leader_ledger(talk->leader), "a"));
    wait_for_watches(talk);
    work_leader_value(talk->leader, "s/x", "{\"items\":[{\"id\":\"a\"}]}", 22, revision,
                      talk_now(talk), talk->ms);
    assert_string_equal(talk_all_of(talk), "");
}

static void what_another_leader_has_forgotten_does_not_begin_anew(void **state)
{
    struct talk *talk = *state;

    talk_run_a(talk);
    (void)talk_done(talk, "w1", 7, "a", 100, true);
    talk->code = BATON_ECONFLICT;
    assert_string_equal(talk_submit(talk, "y", "{\"id\":\"" OTHER "\"}"), "put b, read b");
    talk->code = BATON_OK;
    /* It was removed, as its submission was deleted; the other one is not known there. */
    assert_string_equal(reads(talk, "a", "{\"format\":1,\"leader\":90,\"items\":[]}"),
                        "read s, read s");
    talk_tell_read(talk, "s/y");
    assert_string_equal(talk_all_of(talk), "put b, assign " OTHER "/101");
    talk_write_key(talk, "s/x", NULL, 0);
    talk_tell_read(talk, "s/x");
    assert_string_equal(talk_all_of(talk), "read l");
    talk_tell_read(talk, "ledger");
    assert_string_equal(talk_all_of(talk), "");
}

static void a_submission_that_is_doubted_is_not_deleted(void **state)
{
    struct talk *talk = *state;

    talk->code = BATON_ECONFLICT;
    assert_string_equal(talk_submit(talk, "x", "{\"id\":\"a\"}"), "put b, read b");
    assert_string_equal(reads(talk, "a", "{\"format\":1,\"leader\":90,\"items\":[]}"), "read s");
    assert_string_equal(talk_submit(talk, "y", "{\"id\":\"" OTHER "\"}"), "put b, read b");
    (void)reads(talk, "a",
                "{\"format\":1,\"leader\":90,"
                "\"items\":[[\"a\",\"idle\",\"\",0,0,0,0,0,0,1000,0]]}");
    talk->code = BATON_OK;
    assert_null(strstr(talk_later(talk, 10000), "delete"));
}

static void a_request_to_cancel_waits_for_an_item_that_is_doubted(void **state)
{
    struct talk *talk = *state;

    talk->code = BATON_ECONFLICT;
    assert_string_equal(talk_submit(talk, "x", "{\"id\":\"a\"}"), "put b, read b");
    assert_string_equal(reads(talk, "a", "{\"format\":1,\"leader\":90,\"items\":[]}"), "read s");
    talk_write_key(talk, "c/a", "", 1);
    talk_tell_key(talk, "c/a");
    for (int i = 0; i < 10; i++) {
        assert_null(strstr(talk_later(talk, 10000), "delete"));
    }
    talk->code = BATON_OK;
    talk_tell_read(talk, "s/x");
    assert_string_equal(talk_all_of(talk), "put b, delete c/a");
    assert_int_equal(talk_state_of(talk, "a"), WORK_CANCELLED);
}

static void an_entry_whose_submission_never_comes_is_cancelled(void **state)
{
    struct talk *talk = *state;

    (void)talk_report(talk, "w1", 7, 0, "");
    talk->code = BATON_ECONFLICT;
    (void)talk_submit(talk, "x", "{\"id\":\"a\"},{\"id\":\"a\"}");
    talk->code = BATON_OK;
    (void)reads(talk, "a",
                "{\"format\":1,\"items\":[[\"" OTHER "\",\"idle\",\"\",0,0,0,0,0,0,1,0]]}");
    wait_for_watches(talk);
    assert_int_equal(talk_state_of(talk, OTHER), WORK_IDLE);
    (void)talk_later(talk, 10000);
    (void)talk_later(talk, 10000);
    assert_int_equal(talk_state_of(talk, OTHER), WORK_CANCELLED);
}

static void a_result_waits_for_its_submission(void **state)
{
    static const char submission[] = "{\"unique\":false,\"items\":[{\"id\":\"" OTHER "\"}]}";
    struct talk *talk = *state;

    (void)talk_report(talk, "w1", 7, 0, "");
    talk->code = BATON_ECONFLICT;
    (void)talk_submit(talk, "x", "{\"id\":\"a\"}");
    talk->code = BATON_OK;
    (void)reads(talk, "a",
                "{\"format\":1,\"items\":[[\"" OTHER
                "\",\"processing\",\"w1\",7,90,1,0,0,0,1000,1000]]}");
    assert_string_equal(talk_done(talk, "w1", 7, OTHER, 90, true), "");
    talk_write_key(talk, "s/late", submission, strlen(submission));
    talk_tell_key(talk, "s/late");
    assert_string_equal(talk_done(talk, "w1", 7, OTHER, 90, true),
                        "put r, put b, ack " OTHER "/90");
    assert_int_equal(talk_state_of(talk, OTHER), WORK_COMPLETED);
}

static void an_item_without_a_submission_is_cancelled_by_the_next_leader(void **state)
{
    struct talk *talk = *state;

    talk_run_a(talk);
    talk_write_key(talk, "s/x", NULL, 0);
    talk_lead(talk, EPOCH + 50);
    talk_load(talk);
    (void)talk_all_of(talk);
    assert_string_equal(talk_report(talk, "w1", 7, 0, "a/100"), "enter w1, stop a/100");
    assert_string_equal(talk_report(talk, "w1", 7, talk->told, ""), "put b, delete c/a");
    assert_int_equal(talk_state_of(talk, "a"), WORK_CANCELLED);
}

static void an_item_that_was_submitted_twice_stays_until_both_submissions_go(void **state)
{
    struct talk *talk = *state;

    talk_run_a(talk);
    assert_string_equal(talk_submit(talk, "y", "{\"id\":\"a\"}"), "");
    (void)talk_done(talk, "w1", 7, "a", 100, true);
    talk->ms += (int64_t)KEEP_S * 1000 + 1000;
    (void)talk_later(talk, 10000);
    (void)talk_tell_rest(talk, "a");
    assert_null(ledger_find(work_leader_ledger(talk->leader), "a"));
    assert_int_equal(talk_counters(talk)->assigned, 1);
}

static void what_is_to_stop_is_stopped_again_if_a_later_message_was_heard(void **state)
{
    struct talk *talk = *state;

    talk_run_a(talk);
    talk_write_key(talk, "c/a", "", 0);
    talk_tell_key(talk, "c/a");
    assert_string_equal(talk_all_of(talk), "stop a/100");
    assert_string_equal(talk_report(talk, "w1", 7, talk->told, "a/100"), ""); /* it is ending */
    assert_string_equal(talk_report(talk, "w1", 7, talk->told + 1, "a/100"), "stop a/100");
}

static void a_session_that_another_leader_places_on_is_not_over_with_the_one_before(void **state)
{
    struct talk *talk = *state;

    (void)talk_report(talk, "w1", 7, 0, "");
    talk_write_key(talk, "d/w1", "", 0); /* so that it is remembered */
    talk_tell_key(talk, "d/w1");
    (void)talk_granted(talk, "w1", 8, true);
    talk->code = BATON_ECONFLICT;
    (void)talk_report(talk, "w2", 5, 0, "");
    (void)talk_submit(talk, "x", "{\"id\":\"a\"}");
    talk->code = BATON_OK;
    (void)reads(talk, "a",
                "{\"format\":1,\"items\":[[\"a\",\"processing\",\"w1\",9,100,1,0,0,0,1000,1000]]}");
    (void)talk_report(talk, "w1", 9, talk->told, "a/100");
    assert_string_equal(talk_done(talk, "w1", 9, "a", 100, true), "put r, put b, ack a/100");
}

/* An earlier leader may have placed it after this one read the bucket. */
static void a_result_of_an_unknown_item_is_acknowledged_once_that_is_certain(void **state)
{
    struct talk *talk = *state;

    (void)talk_report(talk, "w1", 7, 0, "");
    talk->code = BATON_ECONFLICT;
    assert_string_equal(talk_done(talk, "w1", 7, "a", 99, true), "put b, read b");
    talk->code = BATON_OK;
    assert_string_equal(reads(talk, "a",
                              "{\"format\":1,\"leader\":99,\"items\":[[\"a\",\"processing\","
                              "\"w1\",7,99,1,0,0,0,1000,1000]]}"),
                        "ask all");
    (void)talk_submit(talk, "x", "{\"id\":\"a\"}");
    assert_string_equal(talk_done(talk, "w1", 7, "a", 99, true), "put r, put b, ack a/99");
}

static void an_item_waits_for_the_room_of_one_that_moves(void **state)
{
    struct talk *talk = *state;

    (void)talk_report(talk, "w1", 7, 0, "");
    (void)talk_submit(talk, "x", "{\"id\":\"a\",\"kind\":\"service\",\"weight\":2}");
    (void)talk_report(talk, "w2", 8, 0, "");
    talk_write_key(talk, "d/w1", "", 0);
    talk_tell_key(talk, "d/w1");
    assert_string_equal(talk_all_of(talk), "stop a/100");
    talk_write_key(talk, "d/w1", NULL, 0);
    talk_tell_key(talk, "d/w1");
    assert_string_equal(talk_submit(talk, "y", "{\"id\":\"c\",\"weight\":2}"),
                        "put b, assign c/100");
    assert_string_equal(talk_submit(talk, "z", "{\"id\":\"d\",\"weight\":2}"), "put b");
}

static void an_item_that_is_to_move_does_not_hold_its_group(void **state)
{
    struct talk *talk = *state;
    uint64_t told;

    (void)talk_report(talk, "w1", 7, 0, "");
    (void)talk_submit(talk, "x",
                      "{\"id\":\"a\",\"kind\":\"service\",\"together\":\"g\"},"
                      "{\"id\":\"c\",\"kind\":\"service\",\"together\":\"g\"}");
    (void)talk_report(talk, "w2", 8, 0, "");
    talk_write_key(talk, "d/w1", "", 0);
    talk_tell_key(talk, "d/w1");
    assert_string_equal(talk_all_of(talk), "stop a/100, stop c/100");
    told = talk->told;
    assert_string_equal(talk_report(talk, "w1", 7, told, "c/100"), "put b, assign a/101");
    assert_string_equal(talk_report(talk, "w1", 7, told, ""), "put b, assign c/101");
}

static void a_service_leaves_a_drained_worker_when_another_one_has_room(void **state)
{
    struct talk *talk = *state;

    (void)talk_report(talk, "w1", 7, 0, "");
    (void)talk_submit(talk, "x", "{\"id\":\"a\",\"kind\":\"service\",\"weight\":2}");
    (void)talk_report(talk, "w2", 8, 0, "");
    (void)talk_submit(talk, "y", "{\"id\":\"c\",\"weight\":2}");
    talk_write_key(talk, "d/w1", "", 0);
    talk_tell_key(talk, "d/w1");
    assert_string_equal(talk_all_of(talk), ""); /* w2 is full */
    assert_string_equal(talk_done(talk, "w2", 8, "c", 100, true),
                        "put r, put b, stop a/100, ack c/100");
}

static void a_bucket_that_is_older_than_it_was_ends_the_leader(void **state)
{
    struct talk *talk = *state;

    talk_run_a(talk);
    (void)talk_report(talk, "w2", 8, 0, "");
    talk->code = BATON_ECONFLICT;
    (void)talk_granted(talk, "w1", 9, true);
    talk->code = BATON_OK; /* the servers have changed, and the new one lacks the latest writes */
    talk->revision = 1;
    assert_string_equal(
        reads(talk, "a", "{\"format\":1,\"items\":[[\"a\",\"idle\",\"\",0,0,0,0,0,0,1000,0]]}"),
        "resign");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, talk_begin, talk_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_item_of_an_earlier_leader_is_placed_anew_if_its_worker_lacks_it),
        TEST(an_item_that_is_absent_after_the_ask_is_placed_in_a_higher_epoch),
        TEST(workers_are_asked_while_all_is_read_and_what_they_reply_then_counts),
        TEST(a_report_that_came_before_all_was_read_and_knows_no_ask_lacks_nothing),
        TEST(workers_are_asked_again_for_their_items_if_a_bucket_is_missing),
        TEST(a_placing_of_another_leader_is_not_sent_though_it_looks_like_ours),
        TEST(a_placing_that_may_be_stored_late_is_followed_by_one_of_a_higher_epoch),
        TEST(what_a_worker_has_reported_stays_when_its_bucket_is_read_again),
        TEST(a_failure_that_was_not_stored_is_not_acknowledged),
        TEST(a_result_is_not_acknowledged_while_the_next_placing_is_not_stored),
        TEST(a_bucket_of_a_later_leader_ends_this_one),
        TEST(a_worker_that_hears_a_later_leader_ends_this_one),
        TEST(a_bucket_that_is_gone_ends_the_leader),
        TEST(a_request_to_cancel_waits_for_its_item),
        TEST(a_request_to_cancel_that_comes_again_while_it_is_deleted_is_deleted_too),
        TEST(a_request_to_cancel_what_never_comes_goes_in_the_end),
        TEST(a_submission_that_was_deleted_before_it_was_watched_is_looked_for),
        TEST(a_submission_whose_watch_begins_before_all_is_read_is_deleted_in_its_time),
        TEST(a_submission_that_is_deleted_and_made_anew_is_another_one),
        TEST(a_late_notice_of_a_submission_that_was_deleted_starts_nothing),
        TEST(what_another_leader_has_forgotten_does_not_begin_anew),
        TEST(a_submission_that_is_doubted_is_not_deleted),
        TEST(a_request_to_cancel_waits_for_an_item_that_is_doubted),
        TEST(an_entry_whose_submission_never_comes_is_cancelled),
        TEST(a_result_waits_for_its_submission),
        TEST(an_item_without_a_submission_is_cancelled_by_the_next_leader),
        TEST(an_item_that_was_submitted_twice_stays_until_both_submissions_go),
        TEST(what_is_to_stop_is_stopped_again_if_a_later_message_was_heard),
        TEST(a_session_that_another_leader_places_on_is_not_over_with_the_one_before),
        TEST(a_result_of_an_unknown_item_is_acknowledged_once_that_is_certain),
        TEST(an_item_waits_for_the_room_of_one_that_moves),
        TEST(an_item_that_is_to_move_does_not_hold_its_group),
        TEST(a_service_leaves_a_drained_worker_when_another_one_has_room),
        TEST(a_bucket_that_is_older_than_it_was_ends_the_leader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

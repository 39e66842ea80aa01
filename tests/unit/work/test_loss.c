/* The state has lost the ledger, or a part of it: how a leader notices that, and rebuilds it. Many
 * of these schedules were found by the simulator. */
#include "talk.h"

#include <stdio.h>
#include <string.h>

static void without_a_ledger_all_are_asked_and_what_they_hold_is_kept(void **state)
{
    struct talk *talk = *state;
    struct work_claim claim = {.epoch = 55};
    struct work_message message = {.type = WORK_REPORT};
    json_t *object = json_object();
    char id[] = "b";

    talk->key_count = 0;
    talk_lead(talk, EPOCH);
    work_leader_heard(talk->leader, "w1", 7, 0xaa);
    work_leader_loaded(talk->leader, talk_now(talk), talk->ms);
    assert_string_equal(talk_all_of(talk), "put l, ask all in full");
    assert_string_equal(talk_submit(talk, "x", "{\"id\":\"a\"}"), "");

    claim.id = id;
    assert_int_equal(work_item_read(&claim.item, object, id, NULL), BATON_OK);
    message.report = (struct work_report){.session = 7,
                                          .ledger = 0xaa,
                                          .slots = 2,
                                          .is_reply = true,
                                          .worker = "w1",
                                          .seen = {EPOCH, talk->told},
                                          .claims = &claim,
                                          .claim_count = 1};
    work_leader_hear(talk->leader, &message, talk_now(talk), talk->ms);
    /* The buckets of both. "a" waits, as a worker that is not heard may have it; so the ledger is
     * not complete. */
    assert_string_equal(talk_all_of(talk), "put b, put b, enter w1");
    assert_int_equal(talk->made, LEDGER_BUCKETS - 2);
    assert_int_equal(talk_state_of(talk, "b"), WORK_PROCESSING);
    assert_int_equal(talk_state_of(talk, "a"), WORK_IDLE);
    (void)talk_report(talk, "w1", 7, talk->told, "b/55");
    talk->ms += LEASE_MS - 1;
    assert_string_equal(talk_later(talk, 0), "");
    (void)talk_report(talk, "w1", 7, talk->told, "b/55");
    assert_string_equal(talk_later(talk, 1), "put b, put l, ask all, assign a/100");
    work_item_unref(claim.item);
    json_decref(object);
}

/* The ledger is lost. w1 replies with these claims. w2, which was heard before and may run "a" in a
 * later epoch, does not reply. */
static void rebuild_without_w2(struct talk *talk, const char *claims_of_w1)
{
    talk->key_count = 0;
    talk_lead(talk, EPOCH);
    work_leader_heard(talk->leader, "w1", 7, 0xaa);
    work_leader_heard(talk->leader, "w2", 8, 0xaa);
    work_leader_loaded(talk->leader, talk_now(talk), talk->ms);
    assert_string_equal(talk_all_of(talk), "put l, ask all in full");
    assert_string_equal(talk_submit(talk, "x", "{\"id\":\"a\"}"), "");
    assert_string_equal(talk_report(talk, "w1", 7, talk->told, claims_of_w1), "");
    assert_string_equal(talk_later(talk, REPORT_MS), "enter w1, enter w2, put b, ask all in full");
}

static void starts_when_leases_are_over(struct talk *talk)
{
    assert_int_equal(talk_state_of(talk, "a"), WORK_IDLE);
    talk->ms += LEASE_MS - REPORT_MS - 1;
    (void)talk_report(talk, "w1", 7, talk->told, "");
    assert_string_equal(talk_later(talk, 0), "");
    assert_string_equal(talk_later(talk, 1), "put b, put l, ask all, assign a/100");
}

static void without_a_ledger_what_one_worker_lost_waits_for_one_that_is_not_heard(void **state)
{
    struct talk *talk = *state;

    rebuild_without_w2(talk, "a/55-");
    starts_when_leases_are_over(talk);
}

/* w2 was heard before there was a ledger, and may have got items of it since. */
static void
without_a_ledger_a_worker_that_does_not_reply_may_have_got_items_since_it_was_heard(void **state)
{
    struct talk *talk = *state;

    talk->key_count = 0;
    talk_lead(talk, EPOCH);
    work_leader_heard(talk->leader, "w1", 7, 0);
    work_leader_heard(talk->leader, "w2", 8, 0);
    work_leader_loaded(talk->leader, talk_now(talk), talk->ms);
    (void)talk_all_of(talk);
    (void)talk_submit(talk, "x", "{\"id\":\"a\"}");
    (void)talk_report(talk, "w1", 7, talk->told, "");
    (void)talk_later(talk, REPORT_MS);
    starts_when_leases_are_over(talk);
}

static void without_a_ledger_what_has_run_waits_though_its_id_is_of_its_own(void **state)
{
    static const char submission[] = "{\"unique\":true,\"items\":[{}]}";
    struct talk *talk = *state;

    talk->key_count = 0;
    talk_lead(talk, EPOCH);
    work_leader_heard(talk->leader, "w1", 7, 0xaa);
    work_leader_heard(talk->leader, "w2", 8, 0xaa);
    talk_write_key(talk, "s/x", submission, strlen(submission));
    talk_tell_key(talk, "s/x");
    work_leader_loaded(talk->leader, talk_now(talk), talk->ms);
    (void)talk_all_of(talk);
    talk_tell_read(talk, "s/x");
    (void)talk_report(talk, "w1", 7, talk->told, "x.0/55-");
    assert_null(strstr(talk_later(talk, REPORT_MS), "assign"));
    talk->ms += LEASE_MS - REPORT_MS - 1;
    (void)talk_report(talk, "w1", 7, talk->told, "");
    assert_string_equal(talk_later(talk, 0), "");
    assert_string_equal(talk_later(talk, 1), "put b, put l, ask all, assign x.0/100");
}

static void after_a_rebuild_what_one_worker_loses_waits_for_one_that_is_not_heard(void **state)
{
    struct talk *talk = *state;

    rebuild_without_w2(talk, "");
    assert_string_equal(talk_report(talk, "w1", 7, talk->told, "a/55-"), "put b");
    starts_when_leases_are_over(talk);
}

static void after_a_rebuild_what_an_ended_session_had_waits_for_one_that_is_not_heard(void **state)
{
    struct talk *talk = *state;

    rebuild_without_w2(talk, "a/55!");
    assert_string_equal(talk_granted(talk, "w1", 8, true), "leave w1, put b");
    assert_string_equal(talk_report(talk, "w1", 9, talk->told, ""), "enter w1");
    assert_int_equal(talk_state_of(talk, "a"), WORK_IDLE);
}

static void after_a_rebuild_what_failed_waits_for_a_worker_that_is_not_heard(void **state)
{
    struct talk *talk = *state;

    rebuild_without_w2(talk, "");
    assert_string_equal(talk_submit(talk, "y", "{\"id\":\"c\",\"retries\":1,\"backoff_ms\":0}"),
                        "put b");
    assert_string_equal(talk_report(talk, "w1", 7, talk->told, "c/55!"), "put b");
    assert_string_equal(talk_done(talk, "w1", 7, "c", 55, false), "put b, ack c/55");
    assert_int_equal(talk_state_of(talk, "c"), WORK_IDLE);
}

static void after_a_rebuild_what_ran_waits_for_nobody(void **state)
{
    struct talk *talk = *state;

    rebuild_without_w2(talk, "a/55");
    assert_string_equal(talk_granted(talk, "w1", 8, true), "leave w1, put b");
    assert_string_equal(talk_report(talk, "w1", 9, talk->told, ""),
                        "enter w1, put b, assign a/100");
}

static void after_a_rebuild_a_report_from_before_it_shows_no_copy_that_runs(void **state)
{
    struct talk *talk = *state;

    talk->key_count = 0;
    talk_lead(talk, EPOCH);
    work_leader_heard(talk->leader, "w2", 8, 0xaa);
    work_leader_loaded(talk->leader, talk_now(talk), talk->ms);
    (void)talk_submit(talk, "x", "{\"id\":\"a\"}");
    (void)talk_report(talk, "w1", 7, 0, "a/55");
    (void)talk_later(talk, REPORT_MS);
    assert_int_equal(talk_state_of(talk, "a"), WORK_PROCESSING);
    (void)talk_granted(talk, "w1", 8, true);
    assert_string_equal(talk_report(talk, "w1", 9, talk->told, ""), "enter w1");
    assert_int_equal(talk_state_of(talk, "a"), WORK_IDLE);
}

static void after_a_rebuild_the_next_leader_waits_too_for_one_that_is_not_heard(void **state)
{
    struct talk *talk = *state;

    rebuild_without_w2(talk, "");
    assert_int_equal(talk_state_of(talk, "a"), WORK_IDLE);
    talk_lead(talk, EPOCH + 50);
    work_leader_heard(talk->leader, "w1", 7, 1);
    talk_load(talk);
    assert_null(strstr(talk_report(talk, "w1", 7, talk->told, ""), "assign"));
    assert_null(strstr(talk_later(talk, REPORT_MS), "assign"));
    talk->ms += LEASE_MS - REPORT_MS - 1;
    (void)talk_report(talk, "w1", 7, talk->told, "");
    assert_null(strstr(talk_later(talk, 0), "assign"));
    assert_non_null(strstr(talk_later(talk, 1), "assign a/150"));
}

/* The leader had not heard of w2 when it placed the item, and hears that it runs there before the
 * placing is stored. */
static void after_a_rebuild_an_item_waits_while_a_worker_reports_a_copy_of_it(void **state)
{
    struct talk *talk = *state;
    char key[8];

    talk_bucket_key(key, "a");
    talk->key_count = 0;
    talk_lead(talk, EPOCH);
    work_leader_loaded(talk->leader, talk_now(talk), talk->ms);
    assert_string_equal(talk_all_of(talk), "put l, put l, ask all");
    (void)talk_report(talk, "w1", 7, talk->told, "");
    talk->withholds = true;
    assert_string_equal(talk_submit(talk, "x", "{\"id\":\"a\"}"), "put b");
    assert_string_equal(talk_report(talk, "w2", 8, talk->told, "a/55"), "enter w2, stop a/55");
    assert_int_equal(talk_state_of(talk, "a"), WORK_IDLE);
    talk->withholds = false;
    talk_reply(talk, key, BATON_OK);
    assert_null(strstr(talk_all_of(talk), "assign"));
    talk->ms += LEASE_MS - 1;
    (void)talk_report(talk, "w1", 7, talk->told, "");
    assert_null(strstr(talk_later(talk, 0), "assign"));
    assert_non_null(strstr(talk_later(talk, 1), "assign a/101"));
}

/* The leader chose it, and its messages have it. */
static void a_worker_that_knows_the_mark_of_the_new_ledger_shows_no_loss(void **state)
{
    struct talk *talk = *state;

    talk->key_count = 0;
    talk_lead(talk, EPOCH);
    assert_string_equal(talk_submit(talk, "x", "{\"id\":\"a\"}"), "");
    work_leader_loaded(talk->leader, talk_now(talk), talk->ms);
    assert_string_equal(talk_all_of(talk), "put l, read s, put b, ask all in full");
    talk->knows = 1;
    assert_string_equal(talk_report(talk, "w1", 7, talk->told, ""),
                        "enter w1, put b, assign a/100");
    assert_string_equal(talk_submit(talk, "y", "{\"id\":\"c\"}"), "put b, assign c/100");
    talk->knows = 2;
    assert_string_equal(talk_report(talk, "w1", 7, talk->told, "a/100 c/100"), "");
    assert_string_equal(talk_submit(talk, "z", "{\"id\":\"d\"}"), "put b");
}

static void without_a_ledger_an_item_starts_before_all_buckets_are_made(void **state)
{
    struct talk *talk = *state;
    char key[8], other[8];

    talk_bucket_key(key, "a");
    talk->key_count = 0;
    talk_lead(talk, EPOCH);
    talk->withholds = true;
    work_leader_loaded(talk->leader, talk_now(talk), talk->ms);
    assert_string_equal(talk_all_of(talk), "put l, ask all in full");
    assert_string_equal(talk_report(talk, "w1", 7, talk->told, ""), "");
    assert_string_equal(talk_submit(talk, "x", "{\"id\":\"a\"}"), "");
    talk_reply(talk, "ledger", BATON_OK);
    assert_string_equal(talk_all_of(talk), "read s, put b");
    talk_tell_read(talk, "s/x");
    talk_reply(talk, key, BATON_OK);
    assert_string_equal(talk_all_of(talk), "assign a/100");
    for (unsigned i = 0; i < LEDGER_BUCKETS; i++) {
        (void)snprintf(other, sizeof(other), "b/%02u", i);
        assert_string_equal(talk_all_of(talk), "");
        if (strcmp(other, key) != 0) {
            talk_reply(talk, other, BATON_OK);
        }
    }
    assert_string_equal(talk_all_of(talk), "enter w1, put l");
    talk->withholds = false;
}

static void a_ledger_of_another_mark_ends_the_leader(void **state)
{
    struct talk *talk = *state;

    talk_write_key(talk, "ledger", "00000000000000ab", 16);
    talk_tell_key(talk, "ledger");
    assert_string_equal(talk_all_of(talk), "resign: lost");
}

static void a_mark_that_is_none_is_as_good_as_no_ledger(void **state)
{
    static const char *const odd[] = {
        "",
        "aa ",
        " aa",
        "aag",
        "0xaa",
        "-aa",
        "AA",
        "00000000000000aa0",
        "8000000000000000",
        "0",
        "0 0",
        "0  aa",
        "0 aa ",
        "1 aa",
        "0 0 aa",
        "aa 00000000000000000000000000000000000000000000000000000000000000"};
    struct talk *talk = *state;

    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        talk_write_key(talk, "ledger", odd[i], strlen(odd[i]));
        talk_lead(talk, EPOCH + 1 + i);
        talk_load(talk);
        if (strcmp(talk_all_of(talk), "put l, put l, ask all") != 0) {
            fail_msg("\"%s\": %s", odd[i], talk->line);
        }
    }
    talk_write_key(talk, "ledger", "aa\0bb", 5);
    talk_lead(talk, EPOCH + 50);
    talk_load(talk);
    assert_string_equal(talk_all_of(talk), "put l, put l, ask all");
    talk_write_key(talk, "ledger", "7fffffffffffffff", 16);
    talk_lead(talk, EPOCH + 51);
    talk_load(talk);
    assert_string_equal(talk_all_of(talk), "ask all");
}

static void a_submission_that_is_gone_is_cancelled_if_the_ledger_is_not_gone(void **state)
{
    struct talk *talk = *state;

    talk_run_a(talk);
    talk_write_key(talk, "s/x", NULL, 0);
    talk_tell_key(talk, "s/x");
    assert_string_equal(talk_all_of(talk), "read l"); /* is all the rest gone, too? */
    talk_tell_key(talk, "ledger");                    /* a late notice tells nothing of now */
    assert_string_equal(talk_all_of(talk), "");
    talk_tell_read(talk, "ledger");
    assert_string_equal(talk_all_of(talk), "stop a/100");
}

static void a_ledger_that_lacks_a_bucket_is_rebuilt(void **state)
{
    struct talk *talk = *state;
    char key[8];

    talk_run_a(talk);
    talk_bucket_key(key, "c");
    talk_write_key(talk, key, NULL, 0);
    talk_lead(talk, EPOCH + 50);
    talk_load(talk);
    assert_string_equal(talk_all_of(talk), "put l, read s, ask all in full");
}

/* All was lost. Another leader has read what was submitted again, and marks the ledger. */
static void rebuild(struct talk *talk)
{
    talk_run_a(talk);
    for (size_t i = 0; i < talk->key_count; i++) {
        if (talk->keys[i].name[0] != 's') {
            talk_write_key(talk, talk->keys[i].name, NULL, 0);
        }
    }
    talk_lead(talk, EPOCH + 50);
    talk_load(talk);
    assert_string_equal(talk_all_of(talk), "put l, read s, put b, ask all in full");
}

/* The leader hears of its mark before the reply to the put. */
static void rebuild_with_late_reply(struct talk *talk, void (*tell)(struct talk *, const char *))
{
    static const char begun[] = "0 0000000000000001";

    talk_run_a(talk);
    talk_write_key(talk, "ledger", NULL, 0);
    talk_lead(talk, EPOCH + 50);
    talk_load(talk);
    talk->withholds = true;
    assert_string_equal(talk_all_of(talk), "put l, ask all in full");
    talk->withholds = false;
    talk_write_key(talk, "ledger", begun, strlen(begun));
    tell(talk, "ledger");
    talk_reply(talk, "ledger", BATON_OK);
    assert_string_equal(talk_all_of(talk), "read s");
    talk_tell_read(talk, "s/x");
    talk->replies = true;
    assert_non_null(strstr(talk_report(talk, "w1", 7, talk->told, "a/100"), "put l"));
}

static void a_ledger_that_is_begun_is_not_complete_when_a_notice_precedes_the_reply(void **state)
{
    rebuild_with_late_reply(*state, talk_tell_key);
}

static void a_ledger_that_is_begun_is_not_complete_when_a_read_precedes_the_reply(void **state)
{
    rebuild_with_late_reply(*state, talk_tell_read);
}

static void a_notice_of_an_earlier_mark_tells_nothing_while_the_ledger_is_completed(void **state)
{
    struct talk *talk = *state;

    rebuild(talk);
    talk->withholds = true;
    talk_tell_read(talk, "s/x");
    assert_string_equal(talk_all_of(talk), "put l");
    work_leader_value(talk->leader, "ledger", "00000000000000aa", 16, 1, talk_now(talk), talk->ms);
    assert_string_equal(talk_all_of(talk), "");
    talk->withholds = false;
    talk_reply(talk, "ledger", BATON_OK);
    assert_string_equal(talk_all_of(talk), "ask all");
}

static void a_ledger_that_is_lost_while_it_is_rebuilt_ends_the_leader(void **state)
{
    struct talk *talk = *state;

    rebuild(talk);
    talk_tell_read(talk, "s/x"); /* it was there when the mark was */
    talk_write_key(talk, "ledger", NULL, 0);
    talk_write_key(talk, "s/x", NULL, 0);
    talk_tell_key(talk, "s/x");
    assert_string_equal(talk_all_of(talk), "read l");
    talk_tell_read(talk, "ledger");
    assert_string_equal(talk_all_of(talk), "resign: lost");
}

static void a_submission_that_was_gone_when_the_ledger_was_marked_ends_the_leader(void **state)
{
    struct talk *talk = *state;

    rebuild(talk);
    talk_write_key(talk, "s/x", NULL, 0);
    talk_tell_read(talk, "s/x");
    assert_string_equal(talk_all_of(talk), "resign: lost");
}

static void a_submission_that_is_gone_before_all_is_read_ends_a_leader_without_a_mark(void **state)
{
    struct talk *talk = *state;

    talk_run_a(talk);
    talk_write_key(talk, "ledger", NULL, 0);
    talk_lead(talk, EPOCH + 50);
    talk_tell_read(talk, "ledger");
    talk_tell_read(talk, "s/x");
    talk_write_key(talk, "s/x", NULL, 0);
    talk_tell_key(talk, "s/x");
    talk_load(talk);
    assert_string_equal(talk_all_of(talk), "resign: lost");
}

/* It was deleted, or lost with a bucket. */
static void a_submission_that_is_gone_before_a_bucket_is_missed_ends_the_leader(void **state)
{
    struct talk *talk = *state;
    char key[8];

    talk_run_a(talk);
    talk_bucket_key(key, "c");
    talk_write_key(talk, key, NULL, 0);
    talk_lead(talk, EPOCH + 50);
    talk_tell_read(talk, "ledger");
    talk_tell_read(talk, "s/x");
    talk_write_key(talk, "s/x", NULL, 0);
    talk_tell_key(talk, "s/x");
    assert_string_equal(talk_all_of(talk), "ask all");
    talk_load(talk);
    assert_string_equal(talk_all_of(talk), "resign: lost");
}

static void a_submission_that_is_deleted_before_all_is_read_is_cancelled(void **state)
{
    struct talk *talk = *state;

    talk_run_a(talk);
    talk_lead(talk, EPOCH + 50);
    talk_tell_read(talk, "ledger");
    talk_tell_read(talk, "s/x");
    talk_write_key(talk, "s/x", NULL, 0);
    talk_tell_key(talk, "s/x");
    assert_string_equal(talk_all_of(talk), "ask all");
    talk_load(talk);
    assert_string_equal(talk_all_of(talk), "");
    assert_string_equal(talk_report(talk, "w1", 7, 0, "a/100"), "enter w1, stop a/100");
}

static void a_ledger_is_not_complete_before_what_was_read_early_is_read_again(void **state)
{
    struct talk *talk = *state;

    rebuild(talk);
    assert_string_equal(talk_later(talk, REPORT_MS), "");
    talk_tell_read(talk, "s/x");
    assert_string_equal(talk_all_of(talk), "put l, ask all");
}

static void a_rebuilding_that_another_leader_began_goes_on_under_its_mark(void **state)
{
    struct talk *talk = *state;

    rebuild(talk);
    talk_lead(talk, EPOCH + 60);
    talk_load(talk);
    assert_string_equal(talk_all_of(talk), "put l, ask all");
    talk_write_key(talk, "s/x", NULL, 0);
    talk_tell_key(talk, "s/x"); /* it was read after the mark */
    assert_string_equal(talk_all_of(talk), "read l");
    talk_tell_read(talk, "ledger");
    assert_string_equal(talk_all_of(talk), "put b");
    assert_int_equal(talk_state_of(talk, "a"), WORK_CANCELLED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, talk_begin, talk_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_a_ledger_all_are_asked_and_what_they_hold_is_kept),
        TEST(without_a_ledger_what_one_worker_lost_waits_for_one_that_is_not_heard),
        TEST(without_a_ledger_a_worker_that_does_not_reply_may_have_got_items_since_it_was_heard),
        TEST(without_a_ledger_what_has_run_waits_though_its_id_is_of_its_own),
        TEST(after_a_rebuild_what_one_worker_loses_waits_for_one_that_is_not_heard),
        TEST(after_a_rebuild_what_an_ended_session_had_waits_for_one_that_is_not_heard),
        TEST(after_a_rebuild_what_failed_waits_for_a_worker_that_is_not_heard),
        TEST(after_a_rebuild_what_ran_waits_for_nobody),
        TEST(after_a_rebuild_a_report_from_before_it_shows_no_copy_that_runs),
        TEST(after_a_rebuild_the_next_leader_waits_too_for_one_that_is_not_heard),
        TEST(after_a_rebuild_an_item_waits_while_a_worker_reports_a_copy_of_it),
        TEST(a_worker_that_knows_the_mark_of_the_new_ledger_shows_no_loss),
        TEST(without_a_ledger_an_item_starts_before_all_buckets_are_made),
        TEST(a_ledger_of_another_mark_ends_the_leader),
        TEST(a_mark_that_is_none_is_as_good_as_no_ledger),
        TEST(a_submission_that_is_gone_is_cancelled_if_the_ledger_is_not_gone),
        TEST(a_ledger_that_lacks_a_bucket_is_rebuilt),
        TEST(a_ledger_that_is_begun_is_not_complete_when_a_notice_precedes_the_reply),
        TEST(a_ledger_that_is_begun_is_not_complete_when_a_read_precedes_the_reply),
        TEST(a_notice_of_an_earlier_mark_tells_nothing_while_the_ledger_is_completed),
        TEST(a_ledger_that_is_lost_while_it_is_rebuilt_ends_the_leader),
        TEST(a_submission_that_was_gone_when_the_ledger_was_marked_ends_the_leader),
        TEST(a_submission_that_is_gone_before_all_is_read_ends_a_leader_without_a_mark),
        TEST(a_submission_that_is_gone_before_a_bucket_is_missed_ends_the_leader),
        TEST(a_submission_that_is_deleted_before_all_is_read_is_cancelled),
        TEST(a_ledger_is_not_complete_before_what_was_read_early_is_read_again),
        TEST(a_rebuilding_that_another_leader_began_goes_on_under_its_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

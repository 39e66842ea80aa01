/* What is deleted with an item that is forgotten, and writes that are carried out long after they
 * were given up. */
#include "talk.h"

#include <string.h>

/* The item "a" of epoch 100 has ended long ago, and its submission is deleted. */
static void let_a_be_forgotten(struct talk *talk)
{
    talk_run_a(talk);
    (void)talk_done(talk, "w1", 7, "a", 100, true);
    assert_string_equal(talk_later(talk, (KEEP_S - 5) * 1000), "");
    assert_string_equal(talk_later(talk, 20000), "delete s/x, read r, read k");
}

static void what_has_ended_is_kept_for_a_time_and_then_forgotten(void **state)
{
    struct talk *talk = *state;
    uint64_t written;

    let_a_be_forgotten(talk);
    written = talk_key_of(talk, "r/a")->revision;
    talk_tell_read(talk, "r/a");
    assert_string_equal(talk_all_of(talk), "delete r/a");
    assert_int_equal(talk->at, written);
    assert_non_null(ledger_find(work_leader_ledger(talk->leader), "a"));
    talk_tell_read(talk, "k/a");
    assert_string_equal(talk_all_of(talk), "put b");
    assert_null(ledger_find(work_leader_ledger(talk->leader), "a"));
}

static void what_could_not_be_deleted_is_read_again(void **state)
{
    struct talk *talk = *state;

    let_a_be_forgotten(talk);
    talk_tell_read(talk, "k/a");
    talk->withholds = true;
    talk_tell_read(talk, "r/a");
    assert_string_equal(talk_all_of(talk), "delete r/a");
    talk_reply(talk, "r/a", BATON_ETIMEDOUT);
    assert_string_equal(talk_all_of(talk), "read r");
    talk_tell_read(talk, "r/a");
    assert_string_equal(talk_all_of(talk), "delete r/a");
    talk_write_key(talk, "r/a", NULL, 0);
    talk_reply(talk, "r/a", BATON_ECONFLICT); /* the first one was carried out */
    assert_string_equal(talk_all_of(talk), "read r");
    talk_tell_read(talk, "r/a");
    assert_string_equal(talk_all_of(talk), "put b");
}

static void write_checkpoint(struct talk *talk, uint64_t epoch)
{
    struct buffer value;

    buffer_init(&value, 64);
    buffer_put_u64(&value, epoch);
    buffer_put_text(&value, "so far");
    talk_write_key(talk, "k/a", value.data, value.bytes);
    buffer_fini(&value);
}

static void a_checkpoint_of_what_is_forgotten_is_deleted(void **state)
{
    struct talk *talk = *state;

    let_a_be_forgotten(talk);
    write_checkpoint(talk, 100);
    talk_tell_read(talk, "k/a");
    assert_string_equal(talk_all_of(talk), "delete k/a");
    talk_write_key(talk, "r/a", NULL, 0);
    talk_tell_read(talk, "r/a");
    assert_string_equal(talk_all_of(talk), "put b");
}

/* Another leader has forgotten the item, and there is a later one of its id. */
static void what_a_later_item_of_the_same_id_has_stays(void **state)
{
    static const char result[] = "{\"id\":\"a\",\"epoch\":150,\"success\":true,\"code\":0,"
                                 "\"began_unix_ms\":0,\"ended_unix_ms\":0}";
    struct talk *talk = *state;

    let_a_be_forgotten(talk);
    write_checkpoint(talk, 150);
    talk_tell_read(talk, "k/a");
    talk_write_key(talk, "r/a", result, strlen(result));
    talk_tell_read(talk, "r/a");
    assert_string_equal(talk_all_of(talk), "put b");
    assert_null(ledger_find(work_leader_ledger(talk->leader), "a"));
}

static void an_item_that_is_submitted_again_while_it_is_forgotten_stays(void **state)
{
    struct talk *talk = *state;

    let_a_be_forgotten(talk);
    assert_string_equal(talk_submit(talk, "y", "{\"id\":\"a\"}"), "");
    talk_tell_read(talk, "k/a");
    talk_tell_read(talk, "r/a");
    assert_string_equal(talk_all_of(talk), "delete r/a");
    assert_int_equal(talk_state_of(talk, "a"), WORK_COMPLETED);
}

/* The leader of the earlier one had given it up. */
static void a_late_result_of_an_earlier_item_does_not_end_a_later_one_of_its_id(void **state)
{
    struct talk *talk = *state;
    struct key *stored = talk_key_of(talk, "r/a");
    char before[256];
    size_t bytes;

    let_a_be_forgotten(talk);
    bytes = stored->bytes;
    assert_in_range(bytes, 1, sizeof(before));
    memcpy(before, stored->data, bytes);
    assert_string_equal(talk_tell_rest(talk, "a"), "delete r/a, put b");
    (void)talk_report(talk, "w1", 7, 0, "");
    assert_string_equal(talk_submit(talk, "y", "{\"id\":\"a\"}"), "put b, assign a/101");
    talk_write_key(talk, "r/a", before, bytes);
    talk->withholds = true;
    assert_string_equal(talk_done(talk, "w1", 7, "a", 101, true), "put r");
    talk_reply(talk, "r/a", BATON_ECONFLICT);
    assert_string_equal(talk_all_of(talk), "read r");
    talk_tell_read(talk, "r/a");
    assert_string_equal(talk_all_of(talk), "delete r/a");
    assert_int_equal(talk->at, stored->revision);
    talk->withholds = false;
    talk_reply(talk, "r/a", BATON_OK);
    assert_string_equal(talk_all_of(talk), "put r, put b, ack a/101");
}

/* What its first attempt is, the next leader knows by the bucket. */
static void a_late_result_of_an_earlier_item_does_not_end_a_second_attempt(void **state)
{
    struct talk *talk = *state;
    struct key *stored = talk_key_of(talk, "r/a");
    char before[256];
    size_t bytes;

    let_a_be_forgotten(talk);
    bytes = stored->bytes;
    assert_in_range(bytes, 1, sizeof(before));
    memcpy(before, stored->data, bytes);
    assert_string_equal(talk_tell_rest(talk, "a"), "delete r/a, put b");
    (void)talk_report(talk, "w1", 7, 0, "");
    assert_string_equal(talk_submit(talk, "y", "{\"id\":\"a\"}"), "put b, assign a/101");
    (void)talk_granted(talk, "w1", 8, true);
    assert_string_equal(talk_report(talk, "w1", 9, 0, ""), "enter w1, put b, assign a/102");
    talk_write_key(talk, "r/a", before, bytes);
    talk_lead(talk, EPOCH + 50);
    talk_load(talk);
    (void)talk_report(talk, "w1", 9, 0, "a/102");
    talk->withholds = true;
    assert_string_equal(talk_done(talk, "w1", 9, "a", 102, true), "put r");
    talk_reply(talk, "r/a", BATON_ECONFLICT);
    assert_string_equal(talk_all_of(talk), "read r");
    talk_tell_read(talk, "r/a");
    assert_string_equal(talk_all_of(talk), "delete r/a");
    talk->withholds = false;
    talk_reply(talk, "r/a", BATON_OK);
    assert_string_equal(talk_all_of(talk), "put r, put b, ack a/102");
}

/* The leader of the first attempt had given it up; the item is the same. */
static void a_late_result_of_the_first_attempt_is_that_of_the_item(void **state)
{
    static const char result[] = "{\"id\":\"a\",\"epoch\":100,\"success\":true,\"code\":7,"
                                 "\"began_unix_ms\":0,\"ended_unix_ms\":0}";
    struct talk *talk = *state;

    talk_run_a(talk);
    (void)talk_granted(talk, "w1", 8, true);
    assert_string_equal(talk_report(talk, "w1", 9, 0, ""), "enter w1, put b, assign a/101");
    talk_write_key(talk, "r/a", result, strlen(result));
    talk->withholds = true;
    assert_string_equal(talk_done(talk, "w1", 9, "a", 101, true), "put r");
    talk_reply(talk, "r/a", BATON_ECONFLICT);
    (void)talk_all_of(talk);
    talk->withholds = false;
    talk_tell_read(talk, "r/a");
    assert_string_equal(talk_all_of(talk), "put b, ack a/101");
    assert_int_equal(ledger_find(work_leader_ledger(talk->leader), "a")->code, 7);
}

/* The leader has removed the entry by a write whose reply did not come, and then read that it is
 * there: the write was carried out after that. */
static void an_item_that_is_submitted_again_after_a_late_removal_runs(void **state)
{
    struct talk *talk = *state;
    struct key *stored;
    char bucket[8], *before;
    size_t bytes;

    talk_bucket_key(bucket, "a");
    stored = talk_key_of(talk, bucket);
    talk_run_a(talk);
    (void)talk_done(talk, "w1", 7, "a", 100, true);
    before = strndup(stored->data, stored->bytes);
    bytes = stored->bytes;
    (void)talk_later(talk, (int64_t)KEEP_S * 1000 + 20000);
    talk_tell_read(talk, "k/a");
    talk_write_key(talk, "r/a", NULL, 0);
    talk_tell_read(talk, "r/a");
    talk->withholds = true;
    assert_string_equal(talk_all_of(talk), "put b");
    talk_reply(talk, bucket, BATON_ETIMEDOUT);
    assert_string_equal(talk_all_of(talk), "read b");
    work_leader_read(talk->leader, bucket, before, bytes, stored->revision, talk_now(talk),
                     talk->ms);
    assert_string_equal(talk_all_of(talk), "");
    talk_write_key(talk, bucket, "{\"format\":1,\"leader\":100,\"floor\":100,\"items\":[]}", 48);
    (void)talk_report(talk, "w1", 7, talk->told, "");
    assert_string_equal(talk_submit(talk, "y", "{\"id\":\"a\"}"), "");
    assert_string_equal(talk_later(talk, 10000), "put b");
    talk_reply(talk, bucket, BATON_ECONFLICT);
    assert_string_equal(talk_all_of(talk), "read b");
    talk->withholds = false;
    talk_tell_read(talk, bucket);
    assert_string_equal(talk_all_of(talk), "put b");
    assert_string_equal(talk_report(talk, "w1", 7, talk->told, ""), "put b, assign a/101");
    free(before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, talk_begin, talk_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_has_ended_is_kept_for_a_time_and_then_forgotten),
        TEST(what_could_not_be_deleted_is_read_again),
        TEST(a_checkpoint_of_what_is_forgotten_is_deleted),
        TEST(what_a_later_item_of_the_same_id_has_stays),
        TEST(an_item_that_is_submitted_again_while_it_is_forgotten_stays),
        TEST(a_late_result_of_an_earlier_item_does_not_end_a_later_one_of_its_id),
        TEST(a_late_result_of_an_earlier_item_does_not_end_a_second_attempt),
        TEST(a_late_result_of_the_first_attempt_is_that_of_the_item),
        TEST(an_item_that_is_submitted_again_after_a_late_removal_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Buckets: there and back, damage, what a leader keeps. */
#include "ledger_tools.h"

#define VALUE(rows)      "{\"format\":1,\"items\":[" rows "]}"
#define ROW(state, rest) "[\"a\",\"" state "\"," rest "]"

static void a_ledger_comes_back_from_its_buckets(void **state)
{
    struct ledger *ledger = ledger_new(), *copy = ledger_new();

    for (int i = 0; i < 500; i++) {
        char id[32];
        (void)snprintf(id, sizeof(id), "item.%d", i);
        if (i % 3 > 0) {
            place(ledger, submit_id(ledger, id), i % 2 ? "w" : "v", 7);
        } else {
            (void)submit_id(ledger, id);
        }
        if (i % 3 == 2) {
            ledger_finish(ledger, ledger_find(ledger, id), WORK_COMPLETED, -i, -NOW_MS);
        }
    }
    assert_false(ledger_equal(ledger, copy));
    copy_buckets(ledger, copy);
    assert_true(ledger_equal(ledger, copy));
    assert_true(ledger_equal(copy, ledger));
    assert_int_equal(ledger_changed_bucket(copy, 0), -1);
    assert_int_equal(ledger_changed_bucket(ledger, 0), -1);
    assert_int_equal(ledger_count(copy, WORK_PROCESSING), ledger_count(ledger, WORK_PROCESSING));
    ledger_free(ledger);
    ledger_free(copy);
}

static void a_bucket_is_written_as_its_format_says(void **state)
{
    static const char expected[] =
        "{\"format\":1,\"items\":[[\"a\",\"processing\",\"w\",7,3,1,0,0,0,1000,1000]]}";
    struct ledger *ledger = ledger_new(), *copy = ledger_new();
    struct ledger_entry *entry = submit_id(ledger, "a");
    struct buffer bytes;

    assert_int_equal(ledger_place(ledger, entry, "w", 7, 3, NOW_MS), BATON_OK);
    encode(ledger, entry->bucket, &bytes);
    assert_string_equal(buffer_text(&bytes), expected);
    assert_int_equal(decode(copy, entry->bucket, expected), BATON_OK);
    buffer_clear(&bytes);
    ledger_encode(copy, entry->bucket, &bytes);
    assert_string_equal(buffer_text(&bytes), expected);
    buffer_clear(&bytes);
    ledger_encode(ledger, (entry->bucket + 1) % LEDGER_BUCKETS, &bytes);
    assert_string_equal(buffer_text(&bytes), "{\"format\":1,\"items\":[]}");
    buffer_fini(&bytes);
    ledger_free(ledger);
    ledger_free(copy);
}

static void a_bucket_has_the_highest_epoch_of_what_was_removed(void **state)
{
    static const char expected[] = "{\"format\":1,\"leader\":2,\"floor\":7,\"items\":[]}";
    struct ledger *ledger = ledger_new(), *copy = ledger_new();
    struct ledger_entry *entry = submit_id(ledger, "a");
    struct buffer bytes;

    ledger_set_writer(ledger, 2);
    assert_int_equal(ledger_place(ledger, entry, "w", 7, 7, NOW_MS), BATON_OK);
    ledger_finish(ledger, entry, WORK_COMPLETED, 0, NOW_MS);
    ledger_remove(ledger, entry);
    encode(ledger, ledger_bucket_of("a"), &bytes);
    assert_string_equal(buffer_text(&bytes), expected);
    assert_int_equal(decode(copy, ledger_bucket_of("a"), expected), BATON_OK);
    entry = submit_id(copy, "a");
    assert_int_equal(ledger_place(copy, entry, "w", 7, 3, NOW_MS), BATON_OK);
    assert_int_equal(entry->epoch, 8);
    buffer_fini(&bytes);
    ledger_free(ledger);
    ledger_free(copy);
}

/* Of an id that is not unique: an earlier item of it may have left a result. */
static void a_job_that_was_placed_again_has_its_first_epoch_in_its_bucket(void **state)
{
    static const char expected[] =
        "{\"format\":1,\"items\":[[\"a\",\"processing\",\"w\",7,9,2,0,0,0,"
        "1000,1000,3]]}";
    struct ledger *ledger = ledger_new(), *copy = ledger_new();
    struct ledger_entry *entry = submit_id(ledger, "a");
    struct buffer bytes;

    assert_int_equal(ledger_place(ledger, entry, "w", 7, 3, NOW_MS), BATON_OK);
    ledger_release(ledger, entry, NOW_MS);
    assert_int_equal(ledger_place(ledger, entry, "w", 7, 9, NOW_MS), BATON_OK);
    encode(ledger, entry->bucket, &bytes);
    assert_string_equal(buffer_text(&bytes), expected);
    assert_int_equal(decode(copy, entry->bucket, expected), BATON_OK);
    assert_int_equal(ledger_find(copy, "a")->first, 3);
    assert_true(ledger_equal(ledger, copy));
    buffer_fini(&bytes);
    ledger_free(ledger);
    ledger_free(copy);
}

/* Programs of before read what has no such column, and write it. */
static void what_needs_no_first_epoch_is_written_without_it(void **state)
{
    static const char *const items[] = {"{'id':'a','kind':'service'}", "{'id':'a'}"};

    for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
        struct ledger *ledger = ledger_new();
        struct ledger_entry *entry = submit(ledger, items[i]);
        struct buffer bytes;

        entry->item->is_unique = entry->item->kind == WORK_JOB;
        place(ledger, entry, "w", 7);
        ledger_lose(ledger, entry, NOW_MS);
        place(ledger, entry, "w", 7);
        encode(ledger, entry->bucket, &bytes);
        assert_string_equal(buffer_text(&bytes), "{\"format\":1,\"items\":[[\"a\",\"processing\","
                                                 "\"w\",7,2,2,0,1,0,1000,1000]]}");
        buffer_fini(&bytes);
        ledger_free(ledger);
    }
}

/* Of later attempts a program of before has not written it. */
static void without_the_column_the_first_epoch_is_known_of_a_first_attempt(void **state)
{
    struct ledger *ledger = ledger_new();
    unsigned bucket = ledger_bucket_of("a");

    assert_int_equal(decode(ledger, bucket, VALUE("[\"a\",\"processing\",\"w\",7,5,1,0,0,0,0,0]")),
                     BATON_OK);
    assert_int_equal(ledger_find(ledger, "a")->first, 5);
    assert_int_equal(decode(ledger, bucket, VALUE("[\"a\",\"processing\",\"w\",7,8,2,0,0,0,0,0]")),
                     BATON_OK);
    assert_int_equal(ledger_find(ledger, "a")->first, 0);
    ledger_free(ledger);
}

/* In all versions, on all machines. */
static void the_bucket_of_an_id_is_the_same_for_ever(void **state)
{
    bool is_used[LEDGER_BUCKETS] = {false};

    assert_int_equal(ledger_bucket_of("a"), 34);
    assert_int_equal(ledger_bucket_of("batch-1.0"), 48);
    for (int i = 0; i < 1000; i++) {
        char id[32];
        (void)snprintf(id, sizeof(id), "item.%d", i);
        assert_true(ledger_bucket_of(id) < LEDGER_BUCKETS);
        is_used[ledger_bucket_of(id)] = true;
    }
    for (unsigned i = 0; i < LEDGER_BUCKETS; i++) {
        assert_true(is_used[i]);
    }
}

static void a_bucket_that_has_no_room_to_be_written_stays_changed(void **state)
{
    struct ledger *ledger = ledger_new();
    struct ledger_entry *entry = submit_id(ledger, "a");
    struct buffer bytes;

    buffer_init(&bytes, 30);
    ledger_encode(ledger, entry->bucket, &bytes);
    assert_true(bytes.failed);
    assert_int_equal(ledger_changed_bucket(ledger, 0), entry->bucket);
    buffer_fini(&bytes);
    ledger_free(ledger);
}

static void changed_buckets_are_found_one_after_the_other(void **state)
{
    struct ledger *ledger = ledger_new();

    assert_int_equal(ledger_changed_bucket(ledger, 0), -1);
    ledger_touch(ledger, 0);
    ledger_touch(ledger, LEDGER_BUCKETS - 1);
    assert_int_equal(ledger_changed_bucket(ledger, 0), 0);
    assert_int_equal(ledger_changed_bucket(ledger, 1), LEDGER_BUCKETS - 1);
    assert_int_equal(ledger_changed_bucket(ledger, LEDGER_BUCKETS), -1);
    ledger_free(ledger);
}

/* ---- Damage ---------------------------------------------------------------------------------- */

/* All of the bucket of "a". */
static const char *const damaged[] = {
    "",
    "{}",
    "[]",
    "null",
    "{\"format\":1}",
    "{\"format\":0,\"items\":[]}",
    "{\"format\":01,\"items\":[]}",
    "{\"format\":\"1\",\"items\":[]}",
    "{\"format\":1,\"items\":[]",
    "{\"format\":1,\"items\":[]} ",
    " {\"format\":1,\"items\":[]}",
    "{\"format\":1,\"items\":[],\"more\":1}",
    VALUE(","),
    VALUE("[]"),
    VALUE("[\"a\"]"),
    VALUE(ROW("idle", "\"\",0,0,0,0,0,0,0,0") ","),
    VALUE(ROW("idle", "\"\",0,0,0,0,0,0,0,0") ROW("idle", "\"\",0,0,0,0,0,0,0,0")),
    VALUE(ROW("idle", "\"\",0,0,0,0,0,0,0,0") "," ROW("idle", "\"\",0,0,0,0,0,0,0,0")), /* twice */
    VALUE(ROW("idle", "\"\",0,0,0,0,0,0,0")),
    VALUE(ROW("idle", "\"\",0,0,0,0,0,0,0,0,0")),
    VALUE(ROW("idle", "\"\",0,7,2,0,0,0,0,0,0")),
    VALUE(ROW("idle", "\"\",0,7,2,0,0,0,0,0,7")), /* the first epoch is the latest one */
    VALUE(ROW("idle", "\"\",0,7,2,0,0,0,0,0,")),
    VALUE(ROW("idle", "\"\",0,7,2,0,0,0,0,0,3,3")),
    VALUE(ROW("idle", "\"\",0,0,0,0,0,0,0,")),
    VALUE(ROW("idle", "\"\",0,0,0,0,0,0,0,00")),
    VALUE(ROW("idle", "\"\",0,0,0,0,0,0,0,-0")),
    VALUE(ROW("idle", "\"\",0,0,0,0,0,0,0,-")),
    VALUE(ROW("idle", "\"\",0,-1,0,0,0,0,0,0")),
    VALUE(ROW("idle", "\"\",0,0,0.5,0,0,0,0,0")),
    VALUE(ROW("idle", "\"\",0,0,1e3,0,0,0,0,0")),
    VALUE(ROW("idle", "\"\",0, 0,0,0,0,0,0,0")),
    VALUE(ROW("idle", "\"\",0,9223372036854775808,0,0,0,0,0,0")),
    VALUE(ROW("idle", "\"\",0,0,4294967296,0,0,0,0,0")),
    VALUE(ROW("idle", "\"\",0,0,0,0,0,2147483648,0,0")),
    VALUE(ROW("idle", "\"\",0,0,0,0,0,-2147483649,0,0")),
    VALUE(ROW("idle", "\"\",0,0,0,0,0,0,9223372036854775808,0")),
    VALUE(ROW("idle", "\"w\",7,1,1,0,0,0,0,0")),       /* a place, and idle */
    VALUE(ROW("completed", "\"\",7,1,1,0,0,0,0,0")),   /* a session, and ended */
    VALUE(ROW("processing", "\"\",7,1,1,0,0,0,0,0")),  /* no worker */
    VALUE(ROW("processing", "\"w\",0,1,1,0,0,0,0,0")), /* no session */
    VALUE(ROW("processing", "\"w\",7,0,1,0,0,0,0,0")), /* no epoch */
    VALUE(ROW("processing", "\"w\",7,1,0,0,0,0,0,0")), /* never placed */
    VALUE(ROW("processing", "\"w w\",7,1,1,0,0,0,0,0")),
    VALUE(ROW("processing", "\"w\\u0020\",7,1,1,0,0,0,0,0")),
    VALUE(ROW("waiting", "\"\",0,0,0,0,0,0,0,0")),
    VALUE(ROW("", "\"\",0,0,0,0,0,0,0,0")),
    VALUE("[\"b\",\"idle\",\"\",0,0,0,0,0,0,0,0]"),
    VALUE("[\"\",\"idle\",\"\",0,0,0,0,0,0,0,0]"),
    VALUE("[\"a b\",\"idle\",\"\",0,0,0,0,0,0,0,0]"),
};

static void assert_refused(struct ledger *ledger, const struct ledger *before, const void *data,
                           size_t bytes, int code)
{
    struct baton_error error = {0};
    int changed = ledger_changed_bucket(ledger, 0);
    int got = ledger_decode(ledger, ledger_bucket_of("a"), data, bytes, &error);

    if (got != code || error.code != code || error.message[0] == '\0') {
        fail_msg("%.*s: %d, %s", (int)bytes, (const char *)data, got, error.message);
    }
    assert_true(ledger_equal(ledger, before));
    assert_int_equal(ledger_changed_bucket(ledger, 0), changed);
}

static void a_damaged_bucket_is_refused_and_changes_nothing(void **state)
{
    struct ledger *ledger = ledger_new(), *before = ledger_new();
    char *bytes = calloc(1, LEDGER_BUCKET_MAX + 1);

    assert_non_null(bytes);
    assert_int_not_equal(ledger_bucket_of("b"), ledger_bucket_of("a"));
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
            assert_refused(ledger, before, damaged[i], strlen(damaged[i]), BATON_ECORRUPT);
        }
        assert_refused(ledger, before, bytes, LEDGER_BUCKET_MAX + 1, BATON_ECORRUPT);
        assert_int_equal(ledger_count(ledger, WORK_PROCESSING), round);
        assert_true((ledger_place_next(ledger, NULL) != NULL) == (round == 1));
        if (round == 0) { /* again, with an entry in it */
            place(ledger, submit_id(ledger, "a"), "w", 7);
            place(before, submit_id(before, "a"), "w", 7);
        }
    }
    free(bytes);
    ledger_free(ledger);
    ledger_free(before);
}

static void a_bucket_of_a_later_format_is_not_touched(void **state)
{
    struct ledger *ledger = ledger_new(), *before = ledger_new();
    static const char later[] = "{\"format\":2,\"items\":{}}";

    assert_refused(ledger, before, later, strlen(later), BATON_ENOTSUP);
    ledger_free(ledger);
    ledger_free(before);
}

/* Cut anywhere. */
static void no_torn_bucket_is_read_as_another_one(void **state)
{
    struct ledger *ledger = ledger_new();
    struct ledger_entry *entry = submit_id(ledger, "a");
    struct buffer bytes;

    place(ledger, entry, "w", 7);
    encode(ledger, entry->bucket, &bytes);
    for (size_t i = 0; i < bytes.bytes; i++) {
        struct ledger *copy = ledger_new();

        assert_int_equal(ledger_decode(copy, entry->bucket, bytes.data, i, NULL), BATON_ECORRUPT);
        ledger_free(copy);
    }
    buffer_fini(&bytes);
    ledger_free(ledger);
}

/* ---- What is read anew ----------------------------------------------------------------------- */

static void items_may_change_their_places_all_at_once(void **state)
{
    struct ledger *ledger = ledger_new();
    unsigned bucket = ledger_bucket_of("a");
    char other[32] = "b", text[256];

    for (int i = 0; ledger_bucket_of(other) != bucket; i++) {
        (void)snprintf(other, sizeof(other), "b%d", i);
    }
    place(ledger, submit_id(ledger, "a"), "w", 7);
    place(ledger, submit_id(ledger, other), "v", 7);
    (void)snprintf(text, sizeof(text),
                   VALUE("[\"a\",\"processing\",\"v\",7,2,2,0,0,0,0,0],"
                         "[\"%s\",\"processing\",\"w\",7,2,2,0,0,0,0,0]"),
                   other);
    assert_int_equal(decode(ledger, bucket, text), BATON_OK);
    assert_string_equal(ledger_place_worker(ledger_find(ledger, "a")->place), "v");
    assert_string_equal(ledger_place_worker(ledger_find(ledger, other)->place), "w");
    assert_int_equal(ledger_place_count(ledger_place_find(ledger, "w", 7)), 1);
    assert_int_equal(ledger_decode(ledger, bucket, NULL, 0, NULL), BATON_OK);
    assert_null(ledger_next(ledger, NULL));
    assert_null(ledger_place_next(ledger, NULL));
    ledger_free(ledger);
}

static void an_entry_has_changed_only_if_its_value_has(void **state)
{
    struct ledger *ledger = ledger_new(), *from = ledger_new();
    struct ledger_entry *a;
    uint64_t before;

    place(from, submit_id(from, "a"), "w", 7);
    copy_buckets(from, ledger);
    a = ledger_find(ledger, "a");
    assert_int_equal(a->change, ledger_change(ledger));
    before = a->change;
    copy_buckets(from, ledger);
    assert_int_equal(a->change, before);
    ledger_find(from, "a")->losses++;
    copy_buckets(from, ledger);
    assert_true(a->change > before);
    assert_true(ledger_equal(ledger, from));
    ledger_free(ledger);
    ledger_free(from);
}

static void ledgers_differ_in_each_thing_that_is_stored(void **state)
{
    struct ledger *a = ledger_new(), *b = ledger_new();
    struct ledger_entry *entry;

    place(a, submit_id(a, "a"), "w", 7);
    (void)submit_id(a, "b");
    copy_buckets(a, b);
    entry = ledger_find(b, "a");
#define DIFFER(member)                                                                             \
    entry->member++;                                                                               \
    assert_false(ledger_equal(a, b));                                                              \
    entry->member--;                                                                               \
    assert_true(ledger_equal(a, b));
    DIFFER(epoch)
    DIFFER(first)
    DIFFER(attempt)
    DIFFER(failures)
    DIFFER(losses)
    DIFFER(code)
    DIFFER(since_unix_ms)
    DIFFER(began_unix_ms)
#undef DIFFER
    entry->progress_permille = 5;
    entry->wish = WORK_MOVE;
    assert_true(ledger_equal(a, b));
    ledger_release(b, entry, NOW_MS);
    assert_false(ledger_equal(a, b));
    place(b, entry, "v", 7);
    entry->epoch = entry->attempt = 1;
    assert_false(ledger_equal(a, b));
    ledger_free(a);
    ledger_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ledger_comes_back_from_its_buckets),
        cmocka_unit_test(a_bucket_is_written_as_its_format_says),
        cmocka_unit_test(a_bucket_has_the_highest_epoch_of_what_was_removed),
        cmocka_unit_test(a_job_that_was_placed_again_has_its_first_epoch_in_its_bucket),
        cmocka_unit_test(what_needs_no_first_epoch_is_written_without_it),
        cmocka_unit_test(without_the_column_the_first_epoch_is_known_of_a_first_attempt),
        cmocka_unit_test(the_bucket_of_an_id_is_the_same_for_ever),
        cmocka_unit_test(a_bucket_that_has_no_room_to_be_written_stays_changed),
        cmocka_unit_test(changed_buckets_are_found_one_after_the_other),
        cmocka_unit_test(a_damaged_bucket_is_refused_and_changes_nothing),
        cmocka_unit_test(a_bucket_of_a_later_format_is_not_touched),
        cmocka_unit_test(no_torn_bucket_is_read_as_another_one),
        cmocka_unit_test(items_may_change_their_places_all_at_once),
        cmocka_unit_test(an_entry_has_changed_only_if_its_value_has),
        cmocka_unit_test(ledgers_differ_in_each_thing_that_is_stored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

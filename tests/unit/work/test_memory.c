/* Every allocation of the ledger fails once, in turn: the call says so and has changed nothing, and
 * when it is made again it succeeds. Likewise of a worker, and of the readers of messages and
 * submissions. Linked with --wrap=malloc,calloc,strdup; the sanitizer's build sees what is lost. */
#include "ledger_tools.h"
#include "work/worker.h"

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
char *__wrap_strdup(const char *text);

static long until_failure = -1; /* below 0: all succeed */
static bool has_failed;

static bool must_fail(void)
{
    bool fails = until_failure >= 0 && until_failure-- == 0;

    has_failed |= fails;
    return fails;
}

void *__wrap_malloc(size_t bytes)
{
    return must_fail() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return must_fail() ? NULL : __real_calloc(count, bytes);
}

char *__wrap_strdup(const char *text)
{
    return must_fail() ? NULL : __real_strdup(text);
}

/* Entries and places. */
static size_t weight_of(const struct ledger *ledger)
{
    const struct ledger_place *place = NULL;
    size_t weight = 0;

    for (int i = 0; i < WORK_STATE_COUNT; i++) {
        weight += ledger_count(ledger, (enum work_state)i);
    }
    while ((place = ledger_place_next(ledger, place))) {
        weight += 1000;
    }
    return weight;
}

/* Until it has memory. */
#define INSIST(call)                                                                               \
    do {                                                                                           \
        size_t before = weight_of(ledger);                                                         \
        code = (call);                                                                             \
        assert_true(code == BATON_OK ||                                                            \
                    (code == BATON_ENOMEM && has_failed && weight_of(ledger) == before));          \
    } while (code != BATON_OK)

enum { ITEMS = 30 };

/* A life with all that allocates. */
static void live(struct ledger *ledger, struct work_item *const *items,
                 const struct buffer *buckets)
{
    static const char *const keys[] = {"ball", "cone", NULL};
    enum ledger_verdict verdict;
    int code;

    for (int i = 0; i < ITEMS; i++) {
        struct ledger_entry *entry = NULL;
        struct work_claim what = {.id = items[i]->id, .epoch = 5, .keys = (char **)keys};
        char worker[16];

        (void)snprintf(worker, sizeof(worker), "w%d", i);
        INSIST(ledger_submit(ledger, items[i], NOW_MS, &entry));
        if (i % 3 == 0) {
            INSIST(ledger_place(ledger, entry, worker, 7, 1, NOW_MS));
            what.epoch = entry->epoch;
        }
        if (i % 3 > 0) {
            ledger_finish(ledger, entry, WORK_CANCELLED, 0, NOW_MS);
            ledger_remove(ledger, entry);
            what.item = items[i];
        }
        if (i % 3 != 1) {
            INSIST(ledger_claim(ledger, worker, 7, &what, true, NOW_MS, &verdict));
            what.keys = (char **)(keys + 1);
            INSIST(ledger_claim(ledger, worker, 7, &what, true, NOW_MS, &verdict));
            what.epoch = 9;
            INSIST(ledger_claim(ledger, "v", 7, &what, true, NOW_MS, &verdict));
        }
        INSIST(ledger_end_sessions(ledger, worker, 6));
    }
    for (unsigned i = 0; i < LEDGER_BUCKETS; i++) {
        INSIST(ledger_decode(ledger, i, buckets[i].data, buckets[i].bytes, NULL));
    }
}

static void each_allocation_of_the_ledger_may_fail_once(void **state)
{
    struct ledger *other = ledger_new();
    struct buffer buckets[LEDGER_BUCKETS];
    struct work_item *items[ITEMS];
    long rounds = 0;

    for (int i = 0; i < ITEMS; i++) {
        char text[64];
        (void)snprintf(text, sizeof(text), "{'id':'item.%d','keys':['k%d','ball']}", i, i);
        items[i] = make_item(text);
        place(other, submit(other, text), i % 2 ? "v" : "u", 8);
    }
    for (unsigned i = 0; i < LEDGER_BUCKETS; i++) {
        encode(other, i, &buckets[i]);
    }
    do {
        struct ledger *ledger = ledger_new();

        until_failure = rounds++;
        has_failed = false;
        live(ledger, items, buckets);
        until_failure = -1;
        assert_true(ledger_equal(ledger, other));
        assert_int_equal(ledger_changed_bucket(ledger, 0), -1);
        ledger_free(ledger);
    } while (has_failed);
    assert_true(rounds > 200); /* or nothing was refused */
    for (int i = 0; i < ITEMS; i++) {
        work_item_unref(items[i]);
    }
    for (unsigned i = 0; i < LEDGER_BUCKETS; i++) {
        buffer_fini(&buckets[i]);
    }
    ledger_free(other);
}

/* It takes what it is sent again. */
static void each_allocation_of_a_worker_may_fail_once(void **state)
{
    const struct work_worker_options options = {
        .name = "w", .slots = ITEMS, .report_interval = SPAN_S(1)};
    struct work_assignment assignments[ITEMS];
    long rounds = 0;

    for (int i = 0; i < ITEMS; i++) {
        char text[32];
        (void)snprintf(text, sizeof(text), "{'id':'item.%d'}", i);
        assignments[i] =
            (struct work_assignment){.item = make_item(text), .epoch = 1, .attempt = 1};
    }
    do {
        struct work_worker *worker = work_worker_new(&options);
        struct work_message message = {
            .type = WORK_ASSIGN, .session = 7, .assignments = assignments, .count = ITEMS};
        struct work_order order;

        work_worker_session(worker, 7, (instant){0});
        until_failure = rounds++;
        has_failed = false;
        for (uint64_t number = 1; number <= 2; number++) {
            message.number = (struct work_number){1, number};
            work_worker_hear(worker, &message, (instant){0});
        }
        until_failure = -1;
        for (int i = 0; i < ITEMS; i++) {
            assert_true(work_worker_next_order(worker, &order));
        }
        assert_false(work_worker_next_order(worker, &order)); /* each starts once */
        work_worker_free(worker);
    } while (has_failed);
    assert_true(rounds > ITEMS);
    for (int i = 0; i < ITEMS; i++) {
        work_item_unref(assignments[i].item);
    }
}

static void a_bucket_that_could_not_be_read_has_changed_nothing(void **state)
{
    char value[256], other[32] = "b";
    struct ledger *ledger = ledger_new(), *before = ledger_new();
    unsigned bucket = ledger_bucket_of("a");
    int code = BATON_ENOMEM;

    for (int i = 0; ledger_bucket_of(other) != bucket; i++) {
        (void)snprintf(other, sizeof(other), "b%d", i);
    }
    (void)snprintf(value, sizeof(value),
                   "{\"format\":1,\"items\":[[\"a\",\"processing\",\"v\",9,9,9,0,0,0,0,0],"
                   "[\"%s\",\"processing\",\"u\",9,9,9,0,0,0,0,0]]}",
                   other);
    place(ledger, submit_id(ledger, "a"), "w", 7);
    copy_buckets(ledger, before);
    for (long i = 0; code != BATON_OK; i++) {
        until_failure = i;
        code = decode(ledger, bucket, value);
        until_failure = -1;
        if (code != BATON_OK) {
            assert_int_equal(code, BATON_ENOMEM);
            assert_true(ledger_equal(ledger, before));
            assert_null(ledger_place_find(ledger, "v", 9));
        }
        assert_true(i < 100);
    }
    assert_non_null(ledger_place_find(ledger, "v", 9));
    ledger_free(ledger);
    ledger_free(before);
}

/* jansson's own allocations do not fail: for some of them it says that the text is wrong. */
static void each_allocation_of_the_readers_may_fail_once(void **state)
{
    static const char report[] =
        "{\"type\":\"report\",\"worker\":\"w\",\"session\":1,\"claims\":[{\"id\":\"a\",\"epoch\":1,"
        "\"keys\":[\"k\"],\"item\":{\"id\":\"a\",\"together\":\"t\",\"body\":\"x\"}}]}";
    static const char done[] = "{\"type\":\"done\",\"worker\":\"w\",\"session\":1,\"result\":{"
                               "\"id\":\"a\",\"epoch\":1,\"success\":true,\"code\":0,"
                               "\"began_unix_ms\":0,\"ended_unix_ms\":0,\"output\":\"x\"}}";
    static const char submission[] = "{\"items\":[{\"keys\":[\"a\",\"b\"]},{\"body\":\"x\"}]}";
    static const char *const texts[] = {report, done, submission};

    for (size_t i = 0; i < 3; i++) {
        long rounds = 0;
        int code;

        do {
            struct work_message message;
            struct work_item **items;
            size_t count = 0;

            until_failure = rounds++;
            code =
                i < 2 ? work_message_read(&message, texts[i], strlen(texts[i]), NULL)
                      : work_submission_read(&items, &count, "s", texts[i], strlen(texts[i]), NULL);
            until_failure = -1;
            if (code == BATON_OK && i < 2) {
                work_message_fini(&message);
            }
            for (size_t at = 0; at < count; at++) {
                work_item_unref(items[at]);
            }
            if (count > 0) {
                free((void *)items);
            }
            assert_true(code == BATON_OK || code == BATON_ENOMEM);
        } while (code != BATON_OK);
        assert_true(rounds > 2);
    }
}

static void each_allocation_of_a_copied_report_may_fail_once(void **state)
{
    static const char text[] =
        "{\"type\":\"report\",\"worker\":\"w\",\"session\":1,\"claims\":[{\"id\":\"a\",\"epoch\":1,"
        "\"keys\":[\"k\"],\"item\":{\"id\":\"a\"}},{\"id\":\"b\",\"epoch\":2}]}";
    struct work_message message;
    struct work_report copy = {.claim_count = 0};
    long rounds = 0;
    int code;

    assert_int_equal(work_message_read(&message, text, strlen(text), NULL), BATON_OK);
    do {
        until_failure = rounds++;
        code = work_report_copy(&copy, &message.report);
        until_failure = -1;
        assert_int_equal(copy.claim_count, code == BATON_OK ? 2 : 0);
    } while (code == BATON_ENOMEM);
    assert_int_equal(code, BATON_OK);
    assert_true(rounds > 4);
    work_message_fini(&message);
    assert_string_equal(copy.worker, "w");
    assert_string_equal(copy.claims[0].keys[0], "k");
    assert_string_equal(copy.claims[0].item->id, "a");
    assert_string_equal(copy.claims[1].id, "b");
    work_report_fini(&copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_allocation_of_the_ledger_may_fail_once),
        cmocka_unit_test(each_allocation_of_a_worker_may_fail_once),
        cmocka_unit_test(a_bucket_that_could_not_be_read_has_changed_nothing),
        cmocka_unit_test(each_allocation_of_the_readers_may_fail_once),
        cmocka_unit_test(each_allocation_of_a_copied_report_may_fail_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

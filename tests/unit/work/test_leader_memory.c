/* Every allocation of the leader fails once, in turn: it does all the same, or it resigns, so that
 * another process leads on. Linked with --wrap=malloc,calloc,realloc,strdup. */
#include "cmocka_all.h"
#include "work/leader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *data, size_t bytes);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *data, size_t bytes);
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

void *__wrap_realloc(void *data, size_t bytes)
{
    return must_fail() ? NULL : __real_realloc(data, bytes);
}

char *__wrap_strdup(const char *text)
{
    return must_fail() ? NULL : __real_strdup(text);
}

/* What came of a life of the leader. */
struct life {
    struct work_leader *leader;
    const char *submission; /* the value of "s/x" */
    const char *result;     /* of "r/a", by an attempt before; NULL: none */
    int64_t ms;
    uint64_t revision;
    uint64_t told;       /* the number of its latest message */
    bool has_checkpoint; /* of an item that has ended */
    bool has_resigned;
    unsigned placings, acknowledged, results, deleted, left;
};

static instant now_of(const struct life *life)
{
    return instant_add((instant){0}, SPAN_MS(life->ms));
}

static void take_message(struct life *life, const struct work_output *output)
{
    long fails_later = until_failure;
    struct work_message message = {0};

    until_failure = -1; /* the test's own */
    assert_int_equal(work_message_read(&message, output->data, output->bytes, NULL), BATON_OK);
    life->told = message.number.count;
    life->placings += message.type == WORK_ASSIGN ? (unsigned)message.count : 0;
    life->acknowledged += message.type == WORK_ACK ? (unsigned)message.count : 0;
    work_message_fini(&message);
    until_failure = fails_later;
}

static void reply_read(struct life *life, const char *key)
{
    static const char checkpoint[8] = {1}; /* of epoch 1 */
    const char *value = key[0] == 's' ? life->submission : key[0] == 'r' ? life->result : NULL;

    if (key[0] == 'k' && life->has_checkpoint) {
        work_leader_read(life->leader, key, checkpoint, sizeof(checkpoint), 1, now_of(life),
                         life->ms);
        return;
    }
    work_leader_read(life->leader, key, value, value ? strlen(value) : 0, value != NULL,
                     now_of(life), life->ms);
}

/* Every put is stored, but over a result. */
static void take_output(struct life *life, const struct work_output *output)
{
    char key[WORK_ID_MAX + 8] = "";

    if (output->type == WORK_SEND) {
        take_message(life, output);
    } else if (output->type == WORK_PUT || output->type == WORK_READ) {
        memcpy(key, output->key, strlen(output->key) + 1);
        life->deleted += output->type == WORK_PUT && !output->data;
        life->has_checkpoint &= output->type != WORK_PUT || key[0] != 'k';
        life->results += output->type == WORK_PUT && output->data && key[0] == 'r';
    }
    life->left += output->type == WORK_LEAVE;
    life->has_resigned |= output->type == WORK_RESIGN;
    if (output->type == WORK_PUT) {
        work_leader_stored(life->leader, key,
                           key[0] == 'r' && life->result && output->data ? BATON_ECONFLICT
                                                                         : BATON_OK,
                           ++life->revision, now_of(life), life->ms);
    } else if (output->type == WORK_READ) {
        reply_read(life, key);
    }
}

static void carry_on(struct life *life, int64_t ms)
{
    struct work_output output;

    life->ms += ms;
    work_leader_tick(life->leader, now_of(life), life->ms);
    while (work_leader_next_output(life->leader, now_of(life), life->ms, &output)) {
        take_output(life, &output);
    }
}

static void write_key(struct life *life, const char *key, const char *value)
{
    work_leader_value(life->leader, key, value, value ? strlen(value) : 0, ++life->revision,
                      now_of(life), life->ms);
    carry_on(life, 1);
}

static void submit(struct life *life, const char *value)
{
    life->submission = value;
    write_key(life, "s/x", value);
}

static void report_claims(struct life *life, const char *worker, struct work_claim *claims,
                          size_t count)
{
    struct work_message message = {.type = WORK_REPORT};

    message.report =
        (struct work_report){.session = 7, .slots = 1, .claims = claims, .claim_count = count};
    message.report.seen = (struct work_number){100, life->told};
    memcpy(message.report.worker, worker, strlen(worker) + 1);
    work_leader_hear(life->leader, &message, now_of(life), life->ms);
    carry_on(life, 1000);
}

static void report(struct life *life, const char *worker)
{
    struct work_claim claims[] = {{.id = (char *)"a", .epoch = 100},
                                  {.id = (char *)"z", .epoch = 5}};

    report_claims(life, worker, claims, life->placings ? 2 : 0);
}

static void end_a(struct life *life, const char *worker, uint64_t epoch)
{
    struct work_message message = {.type = WORK_DONE, .session = 7};
    uint8_t output[4096] = {0}; /* longer than what was written before */

    memcpy(message.worker, worker, strlen(worker) + 1);
    message.result = (struct work_result){.id = (char *)"a",
                                          .epoch = epoch,
                                          .is_success = true,
                                          .output = output,
                                          .output_bytes = sizeof(output)};
    work_leader_hear(life->leader, &message, now_of(life), life->ms);
    carry_on(life, 1);
}

/* Two items, of which one ends, one is cancelled when its worker has died, and both are
 * forgotten with what was stored for their next attempts. A report is repeated, as it is each
 * second. */
static void live(struct life *life)
{
    work_leader_loaded(life->leader, now_of(life), life->ms);
    carry_on(life, 1000);
    report(life, "v");
    submit(life, "{\"items\":[{\"id\":\"a\"},{\"id\":\"b\"}]}");
    report(life, "v");
    report(life, "v");
    end_a(life, "v", 100);
    end_a(life, "v", 100);
    report(life, "v");
    write_key(life, "c/b", "{}");
    life->has_checkpoint = true;
    work_leader_session(life->leader, "v", 8, true, now_of(life), life->ms);
    carry_on(life, 1);
    for (int i = 0; i < 12; i++) {
        carry_on(life, 10000);
    }
}

static bool is_nothing_lost(const struct life *life, const struct life *whole)
{
    return life->placings >= whole->placings && life->acknowledged > 0 &&
           life->deleted >= whole->deleted && life->left >= whole->left;
}

/* A worker has a copy that another leader has started; another one has the result of a later
 * placing. */
static void hear_of_others(struct life *life)
{
    char key[] = "k", *keys[] = {key, NULL};
    struct work_claim claim = {.id = (char *)"a", .epoch = 150, .keys = keys};

    work_leader_loaded(life->leader, now_of(life), life->ms);
    carry_on(life, 1000);
    submit(life, "{\"items\":[{\"id\":\"a\"}]}");
    report_claims(life, "v", &claim, 1);
    report_claims(life, "w", NULL, 0);
    end_a(life, "w", 160);
}

static bool is_one_copy_and_its_result(const struct life *life, const struct life *whole)
{
    return life->placings == 0 && life->acknowledged <= life->results;
}

static void read_key(struct life *life, const char *key, const char *value)
{
    work_leader_read(life->leader, key, value, strlen(value), ++life->revision, now_of(life),
                     life->ms);
}

/* The ledger has an item at a worker. */
static void read_all(struct life *life)
{
    char key[8];

    read_key(life, "ledger", "0000000000000005");
    for (unsigned i = 0; i < LEDGER_BUCKETS; i++) {
        (void)snprintf(key, sizeof(key), "b/%02u", i);
        read_key(life, key,
                 i == ledger_bucket_of("a")
                     ? "{\"format\":1,\"items\":[[\"a\",\"processing\",\"v\","
                       "7,50,2,0,0,0,0,0]]}"
                     : "{\"format\":1,\"items\":[]}");
    }
    life->submission = "{\"items\":[{\"id\":\"a\"}]}";
    read_key(life, "s/x", life->submission);
    work_leader_loaded(life->leader, now_of(life), life->ms);
    carry_on(life, 1);
}

/* The state has a result of it. */
static void read_result(struct life *life)
{
    struct work_claim claim = {.id = (char *)"a", .epoch = 50};

    life->result = "{\"id\":\"a\",\"epoch\":49,\"success\":false,\"code\":7,\"began_unix_ms\":0,"
                   "\"ended_unix_ms\":0,\"output\":\"x\",\"worker\":\"v\",\"attempt\":1}";
    read_all(life);
    report_claims(life, "v", &claim, 1);
    end_a(life, "v", 50);
    end_a(life, "v", 50);
}

static bool is_the_result_stored(const struct life *life, const struct life *whole)
{
    const struct ledger_entry *entry = ledger_find(work_leader_ledger(life->leader), "a");

    return life->acknowledged > 0 && entry && entry->state == WORK_FAILED && entry->code == 7;
}

/* Its worker's session is over, of which nothing was reported. */
static void end_session(struct life *life)
{
    read_all(life);
    work_leader_session(life->leader, "v", 8, true, now_of(life), life->ms);
    for (int i = 0; i < 4 && life->placings == 0; i++) { /* what was not sent is sent again */
        report_claims(life, "w", NULL, 0);
    }
}

static bool is_placed_anew(const struct life *life, const struct life *whole)
{
    return life->placings == 1;
}

/* Returns how often the leader resigned. Nothing fails in the first round. */
static long play(void (*story)(struct life *life), struct life *whole,
                 bool (*is_right)(const struct life *life, const struct life *whole))
{
    const struct work_leader_options options = {.epoch = 100,
                                                .report_interval = SPAN_S(1),
                                                .silence = SPAN_S(5),
                                                .collect = SPAN_S(1),
                                                .worker_lease = SPAN_S(3),
                                                .keep = SPAN_S(20),
                                                .random = 5};
    long resigned = 0;

    for (long round = -1; round <= 0 || has_failed; round++) {
        struct life life = {.ms = 1000};

        life.leader = work_leader_new(&options, now_of(&life));
        assert_non_null(life.leader);
        has_failed = false;
        until_failure = round;
        story(&life);
        until_failure = -1;
        *whole = round < 0 ? life : *whole;
        resigned += life.has_resigned;
        if (!life.has_resigned && !is_right(&life, whole)) {
            fail_msg("allocation %ld: %u placings of %u, %u acks, %u results, %u deletions of %u, "
                     "left %u of %u",
                     round, life.placings, whole->placings, life.acknowledged, life.results,
                     life.deleted, whole->deleted, life.left, whole->left);
        }
        work_leader_free(life.leader);
    }
    return resigned;
}

static void an_allocation_that_fails_loses_nothing_or_ends_the_leader(void **state)
{
    struct life whole = {0};

    assert_true(play(live, &whole, is_nothing_lost) > 10);
    assert_false(whole.has_resigned);
    assert_true(whole.placings > 0 && whole.acknowledged > 0 && whole.deleted > 2 &&
                whole.left > 0);
}

static void what_a_worker_has_is_taken_or_the_leader_ends(void **state)
{
    struct life whole = {0};

    assert_true(play(hear_of_others, &whole, is_one_copy_and_its_result) > 2);
    assert_true(!whole.has_resigned && whole.acknowledged == 1 && whole.results == 1);
}

static void what_is_read_is_known_or_the_leader_ends(void **state)
{
    struct life whole = {0};

    assert_true(play(read_result, &whole, is_the_result_stored) > 2);
    assert_false(whole.has_resigned);
}

static void what_had_an_ended_session_is_placed_anew_or_the_leader_ends(void **state)
{
    struct life whole = {0};

    assert_true(play(end_session, &whole, is_placed_anew) > 2);
    assert_false(whole.has_resigned);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_is_known_or_the_leader_ends),
        cmocka_unit_test(what_had_an_ended_session_is_placed_anew_or_the_leader_ends),
        cmocka_unit_test(an_allocation_that_fails_loses_nothing_or_ends_the_leader),
        cmocka_unit_test(what_a_worker_has_is_taken_or_the_leader_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

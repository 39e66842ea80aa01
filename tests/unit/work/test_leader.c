/* The leader of a pool, as a conversation. What came of each step is one line: the keys that are
 * put or read, elections, messages. An item is written "id/epoch". Unless a test withholds them,
 * puts are stored at once, and what follows from that is in the same line. */
#include "cmocka_all.h"
#include "work/leader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { EPOCH = 100, REPORT_MS = 1000, LEASE_MS = 30000, KEEP_S = 60, KEYS_MAX = 64 };

struct key {
    char name[WORK_ID_MAX + 8];
    uint64_t revision;
    char *data;
    size_t bytes;
};

struct talk {
    struct work_leader *leader;
    int64_t ms;
    uint64_t revision;
    int code;       /* of each put */
    bool withholds; /* the reply to each put */
    uint64_t told;  /* the number of its latest message */
    struct key keys[KEYS_MAX];
    size_t key_count;
    char line[4096];
};

static instant now_of(const struct talk *talk)
{
    return instant_add((instant){0}, SPAN_MS(talk->ms));
}

static void __attribute__((format(printf, 2, 3))) add(struct talk *talk, const char *format, ...)
{
    size_t used = strlen(talk->line);
    va_list arguments;

    (void)snprintf(talk->line + used, sizeof(talk->line) - used, "%s", used ? ", " : "");
    used = strlen(talk->line);
    va_start(arguments, format);
    (void)vsnprintf(talk->line + used, sizeof(talk->line) - used, format, arguments);
    va_end(arguments);
}

/* ---- The state ------------------------------------------------------------------------------- */

static struct key *key_of(struct talk *talk, const char *name)
{
    struct key *key;

    for (size_t i = 0; i < talk->key_count; i++) {
        if (strcmp(talk->keys[i].name, name) == 0) {
            return &talk->keys[i];
        }
    }
    assert_true(talk->key_count < KEYS_MAX);
    key = &talk->keys[talk->key_count++];
    (void)snprintf(key->name, sizeof(key->name), "%s", name);
    return key;
}

static void write_key(struct talk *talk, const char *name, const void *data, size_t bytes)
{
    struct key *key = key_of(talk, name);

    free(key->data);
    key->data = data ? malloc(bytes + 1) : NULL;
    key->bytes = bytes;
    key->revision = ++talk->revision;
    if (data) {
        memcpy(key->data, data, bytes);
    }
}

static void reply(struct talk *talk, const char *key, int code)
{
    work_leader_stored(talk->leader, key, code, key_of(talk, key)->revision, now_of(talk),
                       talk->ms);
}

static void tell_key(struct talk *talk, const char *name)
{
    const struct key *key = key_of(talk, name);

    work_leader_value(talk->leader, name, key->data, key->bytes, key->revision, now_of(talk),
                      talk->ms);
}

static void carry_out_put(struct talk *talk, const struct work_output *output)
{
    char key[WORK_ID_MAX + 8];

    (void)snprintf(key, sizeof(key), "%s", output->key);
    if (!talk->withholds && talk->code == BATON_OK) {
        write_key(talk, key, output->data, output->bytes);
    }
    if (!talk->withholds) {
        reply(talk, key, talk->code);
    }
}

/* ---- What comes out -------------------------------------------------------------------------- */

static void add_message(struct talk *talk, const struct work_output *output)
{
    struct work_message message = {0};

    assert_int_equal(work_message_read(&message, output->data, output->bytes, NULL), BATON_OK);
    talk->told = message.number.count;
    if (message.type == WORK_ASK) {
        add(talk, "ask all%s", message.ledger ? "" : " in full");
    }
    for (size_t i = 0; i < message.count; i++) {
        bool assigns = message.type == WORK_ASSIGN;

        add(talk, "%s %s/%llu",
            assigns                     ? "assign"
            : message.type == WORK_STOP ? "stop"
                                        : "ack",
            assigns ? message.assignments[i].item->id : message.ids[i].id,
            (unsigned long long)(assigns ? message.assignments[i].epoch : message.ids[i].epoch));
    }
    work_message_fini(&message);
}

static void add_output(struct talk *talk, const struct work_output *output)
{
    switch (output->type) {
    case WORK_PUT:
        if (output->data) {
            add(talk, "put %.1s", output->key);
        } else {
            add(talk, "delete %s", output->key);
        }
        carry_out_put(talk, output);
        break;
    case WORK_READ:
        add(talk, "read %.1s", output->key);
        break;
    case WORK_SEND:
        add_message(talk, output);
        break;
    case WORK_ENTER:
        add(talk, "enter %s", output->worker);
        break;
    case WORK_LEAVE:
        add(talk, "leave %s", output->worker);
        break;
    }
}

static const char *all_of(struct talk *talk)
{
    struct work_output output;

    talk->line[0] = '\0';
    while (work_leader_next_output(talk->leader, now_of(talk), talk->ms, &output)) {
        add_output(talk, &output);
    }
    return talk->line;
}

/* ---- What goes in ---------------------------------------------------------------------------- */

/* "s/x" with these items: JSON without the outer braces. */
static const char *submit(struct talk *talk, const char *name, const char *items)
{
    char key[WORK_ID_MAX], text[1024];

    (void)snprintf(key, sizeof(key), "s/%s", name);
    (void)snprintf(text, sizeof(text), "{\"items\":[%s]}", items);
    write_key(talk, key, text, strlen(text));
    tell_key(talk, key);
    return all_of(talk);
}

/* Claims are "a/5 b/6"; "a/5!" has ended, "a/5-" is gone. `seen`: a number of our messages; 0:
 * none. */
static const char *report(struct talk *talk, const char *worker, uint64_t session, uint64_t seen,
                          const char *claims)
{
    struct work_message message = {.type = WORK_REPORT};
    struct work_claim claim[8] = {{0}};
    char text[256], *rest = text, *one;

    (void)snprintf(text, sizeof(text), "%s", claims);
    message.report = (struct work_report){.session = session, .slots = 2, .claims = claim};
    message.report.seen = seen ? (struct work_number){EPOCH, seen} : (struct work_number){0};
    (void)snprintf(message.report.worker, sizeof(message.report.worker), "%s", worker);
    while ((one = strsep(&rest, " ")) && *one) {
        struct work_claim *at = &claim[message.report.claim_count++];

        at->is_ended = one[strlen(one) - 1] == '!';
        at->is_gone = one[strlen(one) - 1] == '-';
        at->id = strsep(&one, "/");
        at->epoch = strtoull(one, NULL, 10);
    }
    work_leader_hear(talk->leader, &message, now_of(talk), talk->ms);
    return all_of(talk);
}

static const char *done(struct talk *talk, const char *worker, uint64_t session, const char *id,
                        uint64_t epoch, bool is_success)
{
    char text[WORK_ID_MAX];
    struct work_message message = {.type = WORK_DONE, .session = session};

    (void)snprintf(text, sizeof(text), "%s", id);
    (void)snprintf(message.worker, sizeof(message.worker), "%s", worker);
    message.result = (struct work_result){.id = text, .epoch = epoch, .is_success = is_success};
    work_leader_hear(talk->leader, &message, now_of(talk), talk->ms);
    return all_of(talk);
}

static const char *granted(struct talk *talk, const char *worker, uint64_t epoch, bool is_ours)
{
    work_leader_session(talk->leader, worker, epoch, is_ours, now_of(talk), talk->ms);
    return all_of(talk);
}

static const char *later(struct talk *talk, int64_t ms)
{
    talk->ms += ms;
    work_leader_tick(talk->leader, now_of(talk), talk->ms);
    return all_of(talk);
}

static enum work_state state_of(const struct talk *talk, const char *id)
{
    const struct ledger_entry *entry = ledger_find(work_leader_ledger(talk->leader), id);

    assert_non_null(entry);
    return entry->state;
}

static const struct work_counters *counters(const struct talk *talk)
{
    return work_leader_counters(talk->leader);
}

static void lead(struct talk *talk, uint64_t epoch)
{
    struct work_leader_options options = {
        .epoch = epoch,
        .strategy = PLACEMENT_LEAST_LOADED,
        .report_interval = SPAN_MS(REPORT_MS),
        .silence = SPAN_MS(5 * REPORT_MS),
        .collect = SPAN_MS(REPORT_MS),
        .worker_lease = SPAN_MS(LEASE_MS),
        .keep = SPAN_S(KEEP_S),
        .random = 1,
    };

    work_leader_free(talk->leader);
    talk->leader = work_leader_new(&options, now_of(talk));
    assert_non_null(talk->leader);
}

static void load(struct talk *talk)
{
    for (size_t i = 0; i < talk->key_count; i++) {
        if (talk->keys[i].data) {
            tell_key(talk, talk->keys[i].name);
        }
    }
    work_leader_loaded(talk->leader, now_of(talk), talk->ms);
}

/* A leader of a pool whose ledger exists and is empty. */
static int begin(void **state)
{
    static struct talk talk;

    talk = (struct talk){.ms = 1000};
    lead(&talk, EPOCH);
    write_key(&talk, "ledger", "00000000000000aa", 16);
    load(&talk);
    assert_string_equal(all_of(&talk), "ask all");
    *state = &talk;
    return 0;
}

static int end(void **state)
{
    struct talk *talk = *state;

    work_leader_free(talk->leader);
    for (size_t i = 0; i < talk->key_count; i++) {
        free(talk->keys[i].data);
    }
    return 0;
}

/* w1 has reported, and has the item "a" in this epoch. */
static void run_a(struct talk *talk)
{
    assert_string_equal(report(talk, "w1", 7, 0, ""), "enter w1");
    assert_string_equal(submit(talk, "x", "{\"id\":\"a\"}"), "put b, assign a/100");
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void nothing_is_told_before_it_is_stored(void **state)
{
    struct talk *talk = *state;

    (void)report(talk, "w1", 7, 0, "");
    talk->withholds = true;
    assert_string_equal(submit(talk, "x", "{\"id\":\"a\"}"), "put b");
    assert_string_equal(later(talk, 10), "");
    talk->withholds = false;
}

static void a_lost_assignment_is_sent_again(void **state)
{
    struct talk *talk = *state;

    run_a(talk);
    assert_string_equal(report(talk, "w1", 7, talk->told, ""), "assign a/100");
    assert_string_equal(report(talk, "w1", 7, talk->told - 1, ""), ""); /* still under way */
    talk->ms += REPORT_MS;
    assert_string_equal(report(talk, "w1", 7, talk->told - 1, ""), "assign a/100");
    assert_string_equal(report(talk, "w1", 7, talk->told, "a/100"), "");
}

static void what_is_gone_is_placed_anew_and_acknowledged_once_that_is_stored(void **state)
{
    struct talk *talk = *state;
    char key[8];

    (void)snprintf(key, sizeof(key), "b/%02u", ledger_bucket_of("a"));
    run_a(talk);
    talk->withholds = true;
    assert_string_equal(report(talk, "w1", 7, talk->told, "a/100-"), "put b");
    assert_string_equal(report(talk, "w1", 7, talk->told, "a/100-"), "");
    talk->withholds = false;
    reply(talk, key, BATON_OK);
    assert_string_equal(all_of(talk), "assign a/101");
    assert_string_equal(report(talk, "w1", 7, talk->told - 1, "a/100-"), "ack a/100");
    assert_int_equal(counters(talk)->lost, 1);
}

static void a_service_that_is_gone_from_where_it_is_not_to_be_moves(void **state)
{
    struct talk *talk = *state;

    (void)report(talk, "w1", 7, 0, "");
    (void)submit(talk, "x", "{\"id\":\"a\",\"kind\":\"service\"}");
    (void)report(talk, "w2", 8, 0, "");
    write_key(talk, "d/w1", "", 0);
    tell_key(talk, "d/w1");
    assert_string_equal(all_of(talk), "stop a/100");
    assert_string_equal(report(talk, "w1", 7, talk->told, "a/100-"), "put b, assign a/101");
    assert_int_equal(counters(talk)->migrations, 1);
}

static void a_result_is_stored_then_the_ledger_then_acknowledged(void **state)
{
    run_a(*state);
    assert_string_equal(done(*state, "w1", 7, "a", 100, true), "put r, put b, ack a/100");
    assert_int_equal(state_of(*state, "a"), WORK_COMPLETED);
    assert_string_equal(done(*state, "w1", 7, "a", 100, true), "ack a/100"); /* the ack was lost */
    assert_int_equal(counters(*state)->completed, 1);
}

static void
a_result_that_is_stored_after_the_end_of_its_session_is_that_of_the_next_attempt(void **state)
{
    struct talk *talk = *state;

    run_a(talk);
    talk->withholds = true;
    assert_string_equal(done(talk, "w1", 7, "a", 100, true), "put r");
    talk->withholds = false;
    assert_string_equal(granted(talk, "w1", 8, true), "leave w1, put b");
    reply(talk, "r/a", BATON_OK);
    assert_string_equal(all_of(talk), "");
    assert_int_equal(state_of(talk, "a"), WORK_IDLE);
    assert_string_equal(report(talk, "w2", 9, 0, ""), "enter w2, put b, assign a/101");
    assert_string_equal(done(talk, "w2", 9, "a", 101, true), "put r, put b, ack a/101");
    assert_int_equal(state_of(talk, "a"), WORK_COMPLETED);
}

static void a_result_of_an_earlier_placing_is_refused(void **state)
{
    struct talk *talk = *state;

    run_a(talk);
    (void)report(talk, "w2", 8, 0, "");
    assert_string_equal(granted(talk, "w1", 9, true), "leave w1, put b, assign a/101");
    (void)report(talk, "w1", 10, 0, "");
    assert_string_equal(done(talk, "w1", 10, "a", 100, true), "ack a/100");
    assert_int_equal(counters(talk)->refused_results, 1);
    assert_int_equal(state_of(talk, "a"), WORK_PROCESSING);
}

static void silence_moves_nothing_and_the_end_of_the_session_everything(void **state)
{
    struct talk *talk = *state;

    run_a(talk);
    for (int i = 0; i < 100; i++) {
        assert_string_equal(later(talk, REPORT_MS), "");
        if (i == 0) {
            (void)report(talk, "w2", 8, 0, "");
        }
    }
    (void)report(talk, "w2", 8, 0, "");
    assert_string_equal(granted(talk, "w1", 9, true), "leave w1, put b, assign a/101");
    assert_int_equal(counters(talk)->lost, 1);
    assert_int_equal(counters(talk)->failed_workers, 1);
}

static void a_later_session_proves_the_end_of_an_earlier_one(void **state)
{
    run_a(*state);
    assert_string_equal(report(*state, "w1", 9, 0, ""), "put b, assign a/101");
}

static void of_two_leaders_the_second_to_write_reads_what_the_first_did(void **state)
{
    struct talk *talk = *state;
    const struct ledger_entry *entry;
    struct ledger *others = ledger_new();
    struct buffer buffer;
    char key[8];

    (void)report(talk, "w1", 7, 0, "");
    talk->code = BATON_ECONFLICT;
    assert_string_equal(submit(talk, "x", "{\"id\":\"a\"}"), "put b, read b");
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
    write_key(talk, key, buffer.data, buffer.bytes);
    tell_key(talk, key);
    assert_string_equal(all_of(talk), "enter w2");
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

    (void)report(talk, "w1", 7, 0, "");
    talk->code = BATON_ECONFLICT;
    assert_string_equal(submit(talk, "x", "{\"id\":\"a\"}"), "put b, read b");
    talk->code = BATON_OK;
    (void)snprintf(key, sizeof(key), "b/%02u", ledger_bucket_of("a"));
    write_key(talk, key, later_format, strlen(later_format)); /* where it may be, who knows */
    tell_key(talk, key);
    assert_string_equal(all_of(talk), "");
    assert_string_equal(report(talk, "w1", 7, 1, ""), "");
    assert_int_equal(counters(talk)->odd_values, 1);
    write_key(talk, key, empty, strlen(empty));
    tell_key(talk, key);
    assert_string_equal(all_of(talk), "put b, assign a/100");
}

static void a_service_moves_once_its_worker_has_stopped_it(void **state)
{
    struct talk *talk = *state;
    uint64_t stopped;

    (void)report(talk, "w1", 7, 0, "");
    (void)submit(talk, "x", "{\"id\":\"a\",\"kind\":\"service\"}");
    (void)report(talk, "w2", 8, 0, "");
    write_key(talk, "d/w1", "", 0);
    tell_key(talk, "d/w1");
    assert_string_equal(all_of(talk), "stop a/100");
    stopped = talk->told;
    assert_string_equal(report(talk, "w1", 7, stopped - 1, ""), ""); /* older than the order */
    assert_string_equal(report(talk, "w1", 7, stopped, "a/100"), "");
    assert_string_equal(report(talk, "w1", 7, stopped, ""), "put b, assign a/101");
    assert_int_equal(counters(talk)->migrations, 1);
}

static void a_job_is_not_moved(void **state)
{
    struct talk *talk = *state;

    run_a(talk);
    (void)report(talk, "w2", 8, 0, "");
    write_key(talk, "d/w1", "", 0);
    tell_key(talk, "d/w1");
    assert_string_equal(all_of(talk), "");
}

static void without_a_ledger_all_are_asked_and_what_they_hold_is_kept(void **state)
{
    struct talk *talk = *state;
    struct work_claim claim = {.epoch = 55};
    struct work_message message = {.type = WORK_REPORT};
    json_t *object = json_object();
    char id[] = "b";

    talk->key_count = 0;
    lead(talk, EPOCH);
    work_leader_heard(talk->leader, "w1", 7, 0xaa);
    work_leader_loaded(talk->leader, now_of(talk), talk->ms);
    assert_string_equal(all_of(talk), "enter w1, ask all in full");
    assert_string_equal(submit(talk, "x", "{\"id\":\"a\"}"), "");

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
    work_leader_hear(talk->leader, &message, now_of(talk), talk->ms);
    /* The buckets of both, then its birth; "a" waits, as a worker that is not heard may have it. */
    assert_string_equal(all_of(talk), "put b, put b, put l");
    assert_int_equal(state_of(talk, "b"), WORK_PROCESSING);
    assert_int_equal(state_of(talk, "a"), WORK_IDLE);
    (void)report(talk, "w1", 7, talk->told, "b/55");
    talk->ms += LEASE_MS - 1;
    assert_string_equal(later(talk, 0), "");
    (void)report(talk, "w1", 7, talk->told, "b/55");
    assert_string_equal(later(talk, 1), "put b, assign a/100");
    work_item_unref(claim.item);
    json_decref(object);
}

static void a_failed_job_is_tried_again_after_its_backoff(void **state)
{
    struct talk *talk = *state;

    (void)report(talk, "w1", 7, 0, "");
    (void)submit(talk, "x", "{\"id\":\"a\",\"retries\":1,\"backoff_ms\":100}");
    assert_string_equal(done(talk, "w1", 7, "a", 100, false), "put b, ack a/100");
    assert_string_equal(later(talk, 99), "");
    assert_string_equal(done(talk, "w1", 7, "a", 100, false), "ack a/100"); /* no second failure */
    assert_string_equal(later(talk, 1), "put b, assign a/101");
    assert_string_equal(done(talk, "w1", 7, "a", 101, false), "put r, put b, ack a/101");
    assert_int_equal(state_of(talk, "a"), WORK_FAILED);
    assert_int_equal(counters(talk)->retried, 1);
}

static void an_attempt_that_takes_too_long_is_stopped_and_counts_as_failed(void **state)
{
    struct talk *talk = *state;

    (void)report(talk, "w1", 7, 0, "");
    (void)submit(talk, "x", "{\"id\":\"a\",\"timeout_ms\":1500,\"retries\":1}");
    (void)report(talk, "w1", 7, talk->told, "a/100");
    assert_string_equal(later(talk, REPORT_MS), "");
    assert_string_equal(later(talk, REPORT_MS), "stop a/100");
    assert_string_equal(report(talk, "w1", 7, talk->told, ""), "put b");
    assert_int_equal(counters(talk)->timeouts, 1);
    assert_int_equal(counters(talk)->retried, 1);
    assert_string_equal(later(talk, 1000), "put b, assign a/101"); /* after the backoff */
}

static void a_cancelled_job_stops_and_the_request_goes_when_that_is_stored(void **state)
{
    struct talk *talk = *state;

    run_a(talk);
    write_key(talk, "c/a", "", 0);
    tell_key(talk, "c/a");
    assert_string_equal(all_of(talk), "stop a/100");
    assert_string_equal(report(talk, "w1", 7, talk->told, ""), "put b, delete c/a");
    assert_int_equal(state_of(talk, "a"), WORK_CANCELLED);
}

static void what_has_ended_is_kept_for_a_time_and_then_forgotten(void **state)
{
    struct talk *talk = *state;

    run_a(talk);
    (void)done(talk, "w1", 7, "a", 100, true);
    assert_string_equal(later(talk, (KEEP_S - 5) * 1000), "");
    assert_string_equal(later(talk, 20000), "delete s/x, delete r/a, delete k/a, put b");
    assert_null(ledger_find(work_leader_ledger(talk->leader), "a"));
}

static void the_next_leader_goes_on_where_the_ledger_stands(void **state)
{
    struct talk *talk = *state;

    run_a(talk);
    lead(talk, EPOCH + 50);
    load(talk);
    assert_string_equal(all_of(talk), "enter w1, ask all");
    assert_false(work_leader_is_ready(talk->leader));
    assert_string_equal(report(talk, "w1", 7, 0, "a/100"), "");
    assert_true(work_leader_is_ready(talk->leader));
    assert_string_equal(submit(talk, "y", "{\"id\":\"c\"}"), "put b, assign c/150");
}

static void a_copy_that_the_ledger_has_elsewhere_is_stopped(void **state)
{
    struct talk *talk = *state;

    run_a(talk);
    assert_string_equal(report(talk, "w2", 8, 0, "a/99"), "enter w2, stop a/99");
    assert_string_equal(report(talk, "w2", 8, talk->told, "z/99"), "stop z/99");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

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
        TEST(without_a_ledger_all_are_asked_and_what_they_hold_is_kept),
        TEST(a_failed_job_is_tried_again_after_its_backoff),
        TEST(an_attempt_that_takes_too_long_is_stopped_and_counts_as_failed),
        TEST(a_cancelled_job_stops_and_the_request_goes_when_that_is_stored),
        TEST(what_has_ended_is_kept_for_a_time_and_then_forgotten),
        TEST(the_next_leader_goes_on_where_the_ledger_stands),
        TEST(a_copy_that_the_ledger_has_elsewhere_is_stopped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

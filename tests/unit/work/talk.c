#include "talk.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define EMPTY "{\"format\":1,\"items\":[]}"

instant talk_now(const struct talk *talk)
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

struct key *talk_key_of(struct talk *talk, const char *name)
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

void talk_write_key(struct talk *talk, const char *name, const void *data, size_t bytes)
{
    struct key *key = talk_key_of(talk, name);

    free(key->data);
    key->data = data ? malloc(bytes + 1) : NULL;
    key->bytes = bytes;
    key->revision = ++talk->revision;
    if (data) {
        memcpy(key->data, data, bytes);
    }
}

void talk_bucket_key(char ret[8], const char *id)
{
    (void)snprintf(ret, 8, "b/%02u", ledger_bucket_of(id));
}

void talk_reply(struct talk *talk, const char *key, int code)
{
    struct key *stored = talk_key_of(talk, key);

    if (code == BATON_OK && stored->revision == 0) { /* it was withheld */
        stored->revision = ++talk->revision;
    }
    work_leader_stored(talk->leader, key, code, stored->revision, talk_now(talk), talk->ms);
}

void talk_tell_key(struct talk *talk, const char *name)
{
    const struct key *key = talk_key_of(talk, name);

    work_leader_value(talk->leader, name, key->data, key->bytes, key->revision, talk_now(talk),
                      talk->ms);
}

void talk_tell_read(struct talk *talk, const char *name)
{
    const struct key *key = talk_key_of(talk, name);

    work_leader_read(talk->leader, name, key->data, key->bytes, key->revision, talk_now(talk),
                     talk->ms);
}

const char *talk_tell_rest(struct talk *talk, const char *id)
{
    char key[WORK_ID_MAX + 8];

    (void)snprintf(key, sizeof(key), "r/%s", id);
    talk_tell_read(talk, key);
    key[0] = 'k';
    talk_tell_read(talk, key);
    return talk_all_of(talk);
}

static void carry_out_put(struct talk *talk, const struct work_output *output)
{
    char key[WORK_ID_MAX + 8];

    (void)snprintf(key, sizeof(key), "%s", output->key);
    talk->at = output->revision;
    if (!talk->withholds && talk->code == BATON_OK) {
        talk_write_key(talk, key, output->data, output->bytes);
    }
    if (!talk->withholds) {
        talk_reply(talk, key, talk->code);
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

/* A leader that finds no ledger makes all buckets. */
static bool is_empty_bucket(const struct work_output *output)
{
    return output->key[0] == 'b' && output->revision == 0 && output->data &&
           memmem(output->data, output->bytes, "[]", 2) != NULL;
}

static void add_output(struct talk *talk, const struct work_output *output)
{
    switch (output->type) {
    case WORK_PUT:
        if (is_empty_bucket(output)) {
            talk->made++;
        } else if (output->data) {
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
    case WORK_RESIGN:
        add(talk, output->is_lost ? "resign: lost" : "resign");
        break;
    }
}

const char *talk_all_of(struct talk *talk)
{
    struct work_output output;

    talk->line[0] = '\0';
    while (work_leader_next_output(talk->leader, talk_now(talk), talk->ms, &output)) {
        add_output(talk, &output);
    }
    return talk->line;
}

/* ---- What goes in ---------------------------------------------------------------------------- */

const char *talk_submit(struct talk *talk, const char *name, const char *items)
{
    char key[WORK_ID_MAX], text[1024];

    (void)snprintf(key, sizeof(key), "s/%s", name);
    (void)snprintf(text, sizeof(text), "{\"items\":[%s]}", items);
    talk_write_key(talk, key, text, strlen(text));
    talk_tell_key(talk, key);
    return talk_all_of(talk);
}

const char *talk_report(struct talk *talk, const char *worker, uint64_t session, uint64_t seen,
                        const char *claims)
{
    struct work_message message = {.type = WORK_REPORT};
    struct work_claim claim[8] = {{0}};
    char text[256], *rest = text, *one;

    (void)snprintf(text, sizeof(text), "%s", claims);
    message.report = (struct work_report){.session = session,
                                          .ledger = talk->knows,
                                          .slots = 2,
                                          .is_reply = talk->replies,
                                          .claims = claim};
    message.report.seen = seen ? (struct work_number){talk->epoch, seen} : (struct work_number){0};
    (void)snprintf(message.report.worker, sizeof(message.report.worker), "%s", worker);
    while ((one = strsep(&rest, " ")) && *one) {
        struct work_claim *at = &claim[message.report.claim_count++];

        at->is_ended = one[strlen(one) - 1] == '!';
        at->is_gone = one[strlen(one) - 1] == '-';
        at->id = strsep(&one, "/");
        at->epoch = strtoull(one, NULL, 10);
    }
    work_leader_hear(talk->leader, &message, talk_now(talk), talk->ms);
    return talk_all_of(talk);
}

const char *talk_done(struct talk *talk, const char *worker, uint64_t session, const char *id,
                      uint64_t epoch, bool is_success)
{
    char text[WORK_ID_MAX];
    struct work_message message = {.type = WORK_DONE, .session = session};

    (void)snprintf(text, sizeof(text), "%s", id);
    (void)snprintf(message.worker, sizeof(message.worker), "%s", worker);
    message.result = (struct work_result){.id = text, .epoch = epoch, .is_success = is_success};
    work_leader_hear(talk->leader, &message, talk_now(talk), talk->ms);
    return talk_all_of(talk);
}

const char *talk_granted(struct talk *talk, const char *worker, uint64_t epoch, bool is_ours)
{
    work_leader_session(talk->leader, worker, epoch, is_ours, talk_now(talk), talk->ms);
    return talk_all_of(talk);
}

const char *talk_later(struct talk *talk, int64_t ms)
{
    talk->ms += ms;
    work_leader_tick(talk->leader, talk_now(talk), talk->ms);
    return talk_all_of(talk);
}

enum work_state talk_state_of(const struct talk *talk, const char *id)
{
    const struct ledger_entry *entry = ledger_find(work_leader_ledger(talk->leader), id);

    assert_non_null(entry);
    return entry->state;
}

const struct work_counters *talk_counters(const struct talk *talk)
{
    return work_leader_counters(talk->leader);
}

void talk_lead(struct talk *talk, uint64_t epoch)
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

    talk->epoch = epoch;
    work_leader_free(talk->leader);
    talk->leader = work_leader_new(&options, talk_now(talk));
    assert_non_null(talk->leader);
}

void talk_load(struct talk *talk)
{
    for (size_t i = 0; i < talk->key_count; i++) {
        if (talk->keys[i].data) {
            talk_tell_read(talk, talk->keys[i].name);
        }
    }
    work_leader_loaded(talk->leader, talk_now(talk), talk->ms);
}

int talk_begin(void **state)
{
    static struct talk talk;
    char key[8];

    talk = (struct talk){.ms = 1000};
    talk_lead(&talk, EPOCH);
    talk_write_key(&talk, "ledger", "00000000000000aa", 16);
    for (int i = 0; i < LEDGER_BUCKETS; i++) {
        (void)snprintf(key, sizeof(key), "b/%02d", i);
        talk_write_key(&talk, key, EMPTY, strlen(EMPTY));
    }
    talk_load(&talk);
    assert_string_equal(talk_all_of(&talk), "ask all");
    *state = &talk;
    return 0;
}

int talk_end(void **state)
{
    struct talk *talk = *state;

    work_leader_free(talk->leader);
    for (size_t i = 0; i < talk->key_count; i++) {
        free(talk->keys[i].data);
    }
    return 0;
}

void talk_run_a(struct talk *talk)
{
    assert_string_equal(talk_report(talk, "w1", 7, 0, ""), "enter w1");
    assert_string_equal(talk_submit(talk, "x", "{\"id\":\"a\"}"), "put b, assign a/100");
}

#include "work/leader_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum { MARK_DIGITS = 16 };

void leader_queue(struct work_leader *leader, enum work_output_type type, const char *text,
                  uint64_t revision)
{
    struct leader_queued *queued = calloc(1, sizeof(*queued));

    if (!queued) {
        leader->is_over = true;
        return;
    }
    queued->type = type;
    queued->revision = revision;
    (void)snprintf(queued->text, sizeof(queued->text), "%s", text);
    DL_APPEND(leader->queue, queued);
}

bool leader_is_stored(const struct work_leader *leader, const struct ledger_entry *entry)
{
    return entry->change <= leader->buckets[entry->bucket].stored ||
           WORK_MUTANT(TELLS_BEFORE_STORED);
}

bool leader_is_still_stored(struct work_leader *leader, const struct ledger_entry *entry,
                            uint64_t heard)
{
    bool is_unique = entry->item && entry->item->is_unique;
    bool is_certain =
        is_unique || leader->buckets[entry->bucket].heard >= heard || WORK_MUTANT(OLD_VIEW_COUNTS);

    if (!is_certain && leader_is_stored(leader, entry)) {
        ledger_touch(leader->ledger, entry->bucket);
    }
    return is_certain && leader_is_stored(leader, entry);
}

bool leader_is_unknown(struct work_leader *leader, const char *id)
{
    unsigned bucket = ledger_bucket_of(id);

    if (ledger_find(leader->ledger, id)) {
        return false;
    }
    if (!leader->buckets[bucket].is_written) {
        ledger_touch(leader->ledger, bucket);
    }
    return leader->buckets[bucket].is_written;
}

void leader_end_as_lost(struct work_leader *leader)
{
    leader->is_over = leader->is_lost = true;
}

void leader_check_ledger(struct work_leader *leader)
{
    if (!leader->is_checking) {
        leader->is_checking = true;
        leader_queue(leader, WORK_READ, "ledger", 0);
    }
}

/* ---- What is read ---------------------------------------------------------------------------- */

static int bucket_of_key(const char *key)
{
    char *end;
    unsigned long number = strtoul(key, &end, 10);

    return strlen(key) == 2 && *end == '\0' && number < LEDGER_BUCKETS ? (int)number : -1;
}

/* Of a placing of ours that was not stored and one of another leader, the latter may be read, and
 * look the same: then its worker heard of it from that leader. Or ours is stored late, by a state
 * that has lost what came after it: what is placed now has a higher epoch. */
static void disown(struct work_leader *leader, unsigned number)
{
    struct ledger_entry *entry;

    for (entry = ledger_next(leader->ledger, NULL); entry;
         entry = ledger_next(leader->ledger, entry)) {
        if (entry->bucket == number && !leader_is_stored(leader, entry)) {
            entry->is_ours = false;
            ledger_pass_over(leader->ledger, entry);
        }
    }
}

/* A copy that a worker has reported, and that is not stored. */
struct claimed {
    struct claimed *next;
    uint64_t session;
    struct work_claim claim;
    char worker[BATON_NAME_MAX];
    char id[WORK_ID_MAX];
};

static void add_claimed(struct work_leader *leader, struct claimed **list,
                        const struct ledger_entry *entry)
{
    struct claimed *claimed = calloc(1, sizeof(*claimed));

    if (!claimed) {
        leader->is_over = true;
        return;
    }
    (void)snprintf(claimed->id, sizeof(claimed->id), "%s", entry->id);
    (void)snprintf(claimed->worker, sizeof(claimed->worker), "%s",
                   ledger_place_worker(entry->place));
    claimed->session = ledger_place_session(entry->place);
    claimed->claim = (struct work_claim){.id = claimed->id,
                                         .epoch = entry->epoch,
                                         .progress_permille = entry->progress_permille,
                                         .item = entry->item ? work_item_ref(entry->item) : NULL};
    LL_PREPEND(*list, claimed);
}

static struct claimed *claims_of(struct work_leader *leader, unsigned number)
{
    struct claimed *list = NULL;
    struct ledger_entry *entry;

    for (entry = ledger_next(leader->ledger, NULL); entry;
         entry = ledger_next(leader->ledger, entry)) {
        if (entry->bucket == number && entry->state == WORK_PROCESSING && entry->report != 0 &&
            !entry->is_ours && !leader_is_stored(leader, entry)) {
            add_claimed(leader, &list, entry);
        }
    }
    return list;
}

/* Their workers have them still, whatever was read. */
static void claim_again(struct work_leader *leader, struct claimed *list, int64_t now_unix_ms)
{
    struct claimed *next;

    for (; list; list = next) {
        enum ledger_verdict verdict = LEDGER_STALE;
        struct ledger_entry *entry;

        next = list->next;
        leader->is_over = leader->is_over ||
                          ledger_claim(leader->ledger, list->worker, list->session, &list->claim,
                                       leader->is_rebuilt, now_unix_ms, &verdict) == BATON_ENOMEM;
        entry = ledger_find(leader->ledger, list->id);
        if (entry && (verdict == LEDGER_ADOPTED || verdict == LEDGER_AGREES)) {
            entry->report = leader->reports;
            entry->told.epoch = leader->options.epoch;
        }
        work_item_unref(list->claim.item);
        free(list);
    }
}

/* It was there, or it was newer: the state has lost it, or its latest writes. */
static bool is_lost(const struct work_leader *leader, const struct leader_bucket *bucket,
                    const void *data, uint64_t revision)
{
    return leader->is_loaded && !WORK_MUTANT(LOSS_IGNORED) &&
           (data ? revision < bucket->revision : bucket->revision != 0);
}

/* A bucket that was read after the load: what is known beside it is added. */
static void read_again(struct work_leader *leader, unsigned number, bool is_there,
                       struct claimed *claims, int64_t now_unix_ms)
{
    if (!is_there) {
        ledger_touch(leader->ledger, number); /* it was not made */
    } else if (ledger_writer(leader->ledger, number) != leader->options.epoch) {
        leader_doubt_submissions(leader, number);
    }
    leader_submit_all(leader, now_unix_ms);
    claim_again(leader, claims, now_unix_ms);
    leader_know_places(leader);
    leader_lose_ended(leader, now_unix_ms);
    leader_acknowledge(leader);
    leader->is_place_due = true;
}

static void take_bucket(struct work_leader *leader, unsigned number, const void *data, size_t bytes,
                        uint64_t revision, int64_t now_unix_ms)
{
    struct leader_bucket *bucket = &leader->buckets[number];
    struct claimed *claims = NULL;
    int code;

    if (leader->is_loaded && !bucket->is_reading) {
        return; /* what we write ourselves */
    }
    if (is_lost(leader, bucket, data, revision)) {
        leader->is_over = true; /* the next leader takes what is left of it */
        if (!data) {
            leader_end_as_lost(leader);
        }
        return;
    }
    if (leader->is_loaded) { /* before, nothing is placed and no report is taken */
        claims = claims_of(leader, number);
        disown(leader, number);
    }
    bucket->revision = revision;
    code = ledger_decode(leader->ledger, number, data, bytes, NULL);
    if (code != BATON_OK) {
        /* Where its items are is not known here: it is not written, and nothing of it is sent. */
        leader->is_over = leader->is_over || code == BATON_ENOMEM;
        leader->counters.odd_values += code != BATON_ENOMEM;
        bucket->is_reading = true;
        claim_again(leader, claims, now_unix_ms);
        return;
    }
    bucket->is_reading = false;
    bucket->stored = ledger_change(leader->ledger);
    leader->is_over =
        leader->is_over || (ledger_writer(leader->ledger, number) > leader->options.epoch &&
                            !WORK_MUTANT(LATER_LEADER_IGNORED));
    if (leader->is_loaded) {
        read_again(leader, number, data != NULL, claims, now_unix_ms);
    }
}

void leader_make_buckets(struct work_leader *leader)
{
    leader->made = ledger_change(leader->ledger);
    for (unsigned i = 0; i < LEDGER_BUCKETS; i++) {
        struct leader_bucket *bucket = &leader->buckets[i];

        if (bucket->revision == 0 && !WORK_MUTANT(BUCKETS_NOT_MADE)) {
            ledger_touch(leader->ledger, i);
        } else if (ledger_changed_bucket(leader->ledger, i) != (int)i) {
            bucket->stored = leader->made; /* what was read is all of it */
        }
    }
}

/* What was known when items were first placed is stored. */
static bool is_made(const struct work_leader *leader)
{
    for (unsigned i = 0; i < LEDGER_BUCKETS; i++) {
        const struct leader_bucket *bucket = &leader->buckets[i];

        if (bucket->is_reading || bucket->stored < leader->made ||
            (bucket->revision == 0 && !WORK_MUTANT(BUCKETS_NOT_MADE))) {
            return false;
        }
    }
    return true;
}

bool leader_has_all_buckets(const struct work_leader *leader)
{
    for (unsigned i = 0; i < LEDGER_BUCKETS; i++) {
        if (leader->buckets[i].revision == 0) {
            return false;
        }
    }
    return true;
}

/* From before the item's first attempt: an earlier item of the id has left it, or its leader had
 * given it up, and it was stored long after. */
static bool is_of_earlier_item(const struct work_leader *leader, const struct leader_result *result,
                               const struct work_result *stored)
{
    const struct ledger_entry *entry = ledger_find(leader->ledger, result->id);

    return entry && entry->epoch == result->epoch && stored->epoch < entry->first &&
           (entry->attempt == 1 || !WORK_MUTANT(EARLIER_RESULT_COUNTS));
}

/* The result of an attempt before: it was stored first, and so it is the item's. */
static void take_result(struct work_leader *leader, const char *key, const void *data, size_t bytes,
                        uint64_t revision, instant now, int64_t now_unix_ms)
{
    struct leader_result *result;
    struct work_result stored = {0};
    int code;

    HASH_FIND_STR(leader->results, key + 2, result);
    if (!result || result->state != RESULT_READING) {
        leader_take_rest(leader, key, data, bytes, revision, now_unix_ms);
        return;
    }
    if (!data) {
        result->state = RESULT_WAITS; /* its time was over */
        return;
    }
    code = work_result_read(&stored, data, bytes, NULL);
    if (code == BATON_OK && is_of_earlier_item(leader, result, &stored)) {
        work_result_fini(&stored);
        result->state = RESULT_CLEARS;
        leader_queue(leader, WORK_PUT, key, revision);
        return;
    }
    if (code == BATON_OK) {
        work_result_fini(&result->result);
        result->result = stored;
    }
    leader->is_over = leader->is_over || code == BATON_ENOMEM;
    leader->counters.odd_values += code != BATON_OK && code != BATON_ENOMEM;
    leader_result_stored(leader, result, now, now_unix_ms);
}

/* 0: the text is no mark. */
static uint64_t read_mark(const char *text)
{
    size_t digits = strspn(text, "0123456789abcdef");
    uint64_t mark = digits <= MARK_DIGITS ? strtoull(text, NULL, 16) : 0;

    return text[digits] == '\0' && mark <= WORK_NUMBER_MAX ? mark : 0;
}

/* The key "ledger" has "MARK", or "0 MARK" while the ledger is not complete. Anything else is no
 * mark, and is written over. */
static uint64_t read_ledger(const void *data, size_t bytes, bool *is_complete)
{
    char text[2 + MARK_DIGITS + 1] = "";
    bool is_begun;
    uint64_t mark;

    if (data && bytes < sizeof(text)) {
        memcpy(text, data, bytes);
    }
    is_begun = strncmp(text, "0 ", 2) == 0;
    mark = strlen(text) == bytes ? read_mark(is_begun ? text + 2 : text) : 0;
    *is_complete = mark != 0 && !is_begun;
    return mark;
}

/* From now on the state cannot be lost without its mark. What was read before was perhaps lost
 * before, too: it is read again. */
static void know_mark(struct work_leader *leader, uint64_t mark, bool is_complete,
                      uint64_t revision)
{
    leader->mark = mark;
    leader->is_complete = is_complete;
    leader->ledger_revision = revision;
    if (mark != 0) {
        leader_read_early(leader);
    }
}

uint64_t leader_complete_ledger(const struct work_leader *leader)
{
    return leader->is_complete ? leader->mark : 0;
}

void leader_lose_ledger(struct work_leader *leader)
{
    leader->mark = 0;
    leader->is_complete = false;
    leader->was_lost = true;
    leader_set_early(leader);
}

static void take_ledger(struct work_leader *leader, bool is_read, const void *data, size_t bytes,
                        uint64_t revision)
{
    bool is_complete;
    uint64_t mark = read_ledger(data, bytes, &is_complete);

    leader->is_checking = leader->is_checking && !is_read;
    if (leader->is_marking && (!is_read || leader->mark == 0)) {
        return; /* the reply to the put says what is there now */
    }
    if (!leader->is_loaded || leader->mark == 0) {
        know_mark(leader, mark, is_complete, data ? revision : 0);
    } else if (mark != leader->mark) {
        leader_end_as_lost(leader);
    } else if (!leader->is_complete) { /* another leader may have completed it */
        leader->is_complete = is_complete;
        leader->ledger_revision = data ? revision : 0;
    }
    if (!leader->is_loaded &&
        (leader->asked == 0 || leader->asked_ledger != leader_complete_ledger(leader))) {
        leader->is_ask_due = true; /* replies come while the rest is read */
    }
}

static void take_value(struct work_leader *leader, const char *key, bool is_read, const void *data,
                       size_t bytes, uint64_t revision, instant now, int64_t now_unix_ms)
{
    struct leader_known *known;
    const char *name = key + 2;
    int number;

    leader->is_cancel_due = true;
    if (strcmp(key, "ledger") == 0) {
        take_ledger(leader, is_read, data, bytes, revision);
        return;
    }
    if (key[0] == '\0' || key[1] != '/') {
        return;
    }
    if (key[0] == 'b' && (number = bucket_of_key(name)) >= 0) {
        take_bucket(leader, (unsigned)number, data, bytes, revision, now_unix_ms);
    } else if (key[0] == 'r') {
        take_result(leader, key, data, bytes, revision, now, now_unix_ms);
    } else if (key[0] == 'k') {
        leader_take_rest(leader, key, data, bytes, revision, now_unix_ms);
    } else if (key[0] == 's') {
        leader_take_submission(leader, name, is_read, data, bytes, revision, now_unix_ms);
    } else if (key[0] == 'c') {
        leader_take_request(leader, name, data != NULL, revision);
    } else if (key[0] == 'd' && (known = leader_know(leader, name))) {
        leader_drain(leader, known, data != NULL);
        leader->is_place_due = leader->is_balance_due = true;
    }
}

void work_leader_value(struct work_leader *leader, const char *key, const void *data, size_t bytes,
                       uint64_t revision, instant now, int64_t now_unix_ms)
{
    take_value(leader, key, false, data, bytes, revision, now, now_unix_ms);
}

void work_leader_read(struct work_leader *leader, const char *key, const void *data, size_t bytes,
                      uint64_t revision, instant now, int64_t now_unix_ms)
{
    take_value(leader, key, true, data, bytes, revision, now, now_unix_ms);
}

/* ---- What is written ------------------------------------------------------------------------- */

static bool put(struct work_leader *leader, const char *key, uint64_t revision, span lifetime,
                struct work_output *ret)
{
    (void)snprintf(leader->key, sizeof(leader->key), "%s", key);
    *ret = (struct work_output){.type = WORK_PUT,
                                .key = leader->key,
                                .data = leader->out.data,
                                .bytes = leader->out.bytes,
                                .revision = revision,
                                .lifetime = lifetime};
    return !leader->out.failed;
}

static bool next_bucket(struct work_leader *leader, struct work_output *ret)
{
    char key[LEADER_KEY_MAX];

    for (int i = ledger_changed_bucket(leader->ledger, 0); i >= 0;
         i = ledger_changed_bucket(leader->ledger, (unsigned)i + 1)) {
        struct leader_bucket *bucket = &leader->buckets[i];

        if (bucket->is_storing || bucket->is_reading) {
            continue;
        }
        buffer_clear(&leader->out);
        ledger_encode(leader->ledger, (unsigned)i, &leader->out);
        bucket->is_storing = !leader->out.failed;
        bucket->storing = ledger_change(leader->ledger);
        bucket->storing_heard = leader->heard;
        (void)snprintf(key, sizeof(key), "b/%02d", i);
        return put(leader, key, WORK_MUTANT(WRITES_AT_ANY_REVISION) ? UINT64_MAX : bucket->revision,
                   SPAN_NS(0), ret);
    }
    return false;
}

static bool next_result(struct work_leader *leader, struct work_output *ret)
{
    struct leader_result *result, *next;
    char key[LEADER_KEY_MAX];

    for (result = leader->results; result; result = next) {
        next = result->hh.next;
        const struct ledger_entry *entry = ledger_find(leader->ledger, result->id);

        if (result->state == RESULT_WAITS && entry) {
            buffer_clear(&leader->out);
            work_result_write(&result->result, result->worker, entry->attempt, &leader->out);
            result->state = leader->out.failed ? RESULT_WAITS : RESULT_WRITING;
            (void)snprintf(key, sizeof(key), "r/%s", result->id);
            return put(leader, key, WORK_MUTANT(RESULT_WRITTEN_OVER) ? UINT64_MAX : 0,
                       leader->options.keep, ret);
        }
    }
    return false;
}

bool leader_is_all_stored(const struct work_leader *leader)
{
    for (size_t i = 0; i < LEDGER_BUCKETS; i++) {
        if (leader->buckets[i].is_storing || leader->buckets[i].is_reading) {
            return false;
        }
    }
    return ledger_changed_bucket(leader->ledger, 0) < 0;
}

static bool put_ledger(struct work_leader *leader, const char *prefix, uint64_t mark,
                       struct work_output *ret)
{
    buffer_clear(&leader->out);
    buffer_printf(&leader->out, "%s%016llx", prefix, (unsigned long long)mark);
    leader->is_marking = !leader->out.failed;
    return put(leader, "ledger", leader->ledger_revision, SPAN_NS(0), ret);
}

/* A worker that has not replied may have an item of the lost ledger until its lease ends. By then
 * the next leader, too, must know that there was a loss. */
static bool may_lack_items(const struct work_leader *leader, instant now)
{
    return leader->was_lost &&
           instant_before(now, instant_add(leader->began, leader->options.worker_lease));
}

/* A ledger that is rebuilt is marked before anything else is stored, so that its loss is noticed,
 * and is complete when all of it is stored and nothing can be missing in it; items are placed
 * meanwhile, by writes of its buckets like any other. */
static bool next_ledger(struct work_leader *leader, instant now, struct work_output *ret)
{
    if (leader->is_complete || leader->is_marking || leader->is_checking) {
        return false;
    }
    if (leader->mark == 0) {
        return put_ledger(leader, "0 ", leader->chosen, ret);
    }
    return leader->is_ready && is_made(leader) && !leader_has_early(leader) &&
           !may_lack_items(leader, now) && put_ledger(leader, "", leader->mark, ret);
}

bool leader_next_put(struct work_leader *leader, instant now, struct work_output *ret)
{
    if (!leader->is_ready) { /* a bucket is written once, with what is placed then */
        return next_ledger(leader, now, ret);
    }
    return next_bucket(leader, ret) || next_result(leader, ret) || next_ledger(leader, now, ret);
}

static void bucket_stored(struct work_leader *leader, struct leader_bucket *bucket, const char *key,
                          int code, uint64_t revision)
{
    struct leader_known *known, *next;

    bucket->is_written = code == BATON_OK;
    if (code == BATON_OK) {
        bucket->revision = revision;
        bucket->stored = bucket->storing;
        bucket->heard = bucket->storing_heard;
        leader_acknowledge(leader);
        for (known = leader->known; known; known = next) {
            next = known->hh.next;
            known->is_due = known->is_due || known->is_waiting;
        }
    } else {
        leader->counters.conflicts += code == BATON_ECONFLICT;
        bucket->is_reading = true;
        leader_queue(leader, WORK_READ, key, 0);
    }
    bucket->is_storing = false;
}

static void ledger_stored(struct work_leader *leader, int code, uint64_t revision)
{
    leader->is_marking = false;
    if (code == BATON_ECONFLICT) { /* by another leader, or by us when no reply came */
        leader_check_ledger(leader);
    } else if (code == BATON_OK && leader->mark == 0) {
        know_mark(leader, leader->chosen, false, revision);
    } else if (code == BATON_OK) {
        leader->is_complete = true;
        leader->ledger_revision = revision;
        leader->is_ask_due = true; /* if it is lost, all workers know that there was one */
    }
}

static void result_stored(struct work_leader *leader, const char *key, int code, instant now,
                          int64_t now_unix_ms)
{
    struct leader_result *result;

    HASH_FIND_STR(leader->results, key + 2, result);
    if (result && result->state == RESULT_CLEARS) {
        result->state = RESULT_WAITS;
    } else if (!result || result->state != RESULT_WRITING) {
        leader_rest_deleted(leader, key, code, now_unix_ms);
    } else if (code == BATON_OK) {
        leader_result_stored(leader, result, now, now_unix_ms);
    } else {
        result->state = RESULT_READING;
        leader_queue(leader, WORK_READ, key, 0);
    }
}

void work_leader_stored(struct work_leader *leader, const char *key, int code, uint64_t revision,
                        instant now, int64_t now_unix_ms)
{
    int number;

    leader->is_cancel_due = true;
    if (strcmp(key, "ledger") == 0) {
        ledger_stored(leader, code, revision);
    } else if (key[0] == 'b' && (number = bucket_of_key(key + 2)) >= 0) {
        bucket_stored(leader, &leader->buckets[number], key, code, revision);
    } else if (key[0] == 'r') {
        result_stored(leader, key, code, now, now_unix_ms);
    } else if (key[0] == 'k') {
        leader_rest_deleted(leader, key, code, now_unix_ms);
    } else {
        leader_deletion_stored(leader, key, code);
    }
}

void leader_store_free(struct work_leader *leader)
{
    while (leader->queue) {
        struct leader_queued *queued = leader->queue;

        DL_DELETE(leader->queue, queued);
        free(queued);
    }
}

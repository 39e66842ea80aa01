#include "work/leader_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum { CROWDED_KEEP_MS = 15000 };

bool leader_queue(struct work_leader *leader, enum work_output_type type, const char *text,
                  uint64_t revision)
{
    struct leader_queued *queued = calloc(1, sizeof(*queued));

    if (queued) {
        queued->type = type;
        queued->revision = revision;
        (void)snprintf(queued->text, sizeof(queued->text), "%s", text);
        DL_APPEND(leader->queue, queued);
    }
    return queued != NULL;
}

/* A deletion of "c/ID", "s/NAME", …. */
static void queue_deletion(struct work_leader *leader, char kind, const char *name,
                           uint64_t revision)
{
    char key[LEADER_KEY_MAX];

    (void)snprintf(key, sizeof(key), "%c/%.*s", kind, WORK_ID_MAX, name);
    (void)leader_queue(leader, WORK_PUT, key, revision);
}

bool leader_is_stored(const struct work_leader *leader, const struct ledger_entry *entry)
{
    return entry->change <= leader->buckets[entry->bucket].stored ||
           WORK_MUTANT(TELLS_BEFORE_STORED);
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

/* ---- Submissions and requests ---------------------------------------------------------------- */

static void submission_empty(struct leader_submission *submission)
{
    for (size_t i = 0; i < submission->count; i++) {
        work_item_unref(submission->items[i]);
    }
    free((void *)submission->items);
    submission->items = NULL;
    submission->count = 0;
}

static void submission_free(struct work_leader *leader, struct leader_submission *submission)
{
    HASH_DEL(leader->submissions, submission);
    submission_empty(submission);
    free(submission);
}

/* An item that the lost ledger may have had is perhaps held by a worker that is not heard. */
static bool may_have_run(const struct work_leader *leader, const struct ledger_entry *entry)
{
    return leader->is_rebuilt && leader->was_lost && entry->state == WORK_IDLE &&
           entry->epoch < leader->options.epoch && entry->item && !entry->item->is_unique &&
           !WORK_MUTANT(REBUILDS_IN_HASTE);
}

/* It waits until no worker can act by a lease of that time. */
void leader_hold_back(struct work_leader *leader)
{
    struct ledger_entry *entry = leader->was_lost ? ledger_idle(leader->ledger) : NULL;

    for (; entry; entry = entry->next) {
        if (may_have_run(leader, entry)) {
            entry->not_before = instant_add(leader->began, leader->options.worker_lease);
        }
    }
}

static void submit(struct work_leader *leader, struct leader_submission *submission,
                   int64_t now_unix_ms)
{
    for (size_t i = 0; i < submission->count; i++) {
        struct ledger_entry *entry;

        int code = ledger_submit(leader->ledger, submission->items[i], now_unix_ms, &entry);

        if (code != BATON_OK) {
            leader->is_crowded = leader->is_crowded || code == BATON_EFULL;
            leader->counters.odd_values += code == BATON_EEXIST; /* another item has this id */
            continue;
        }
        if (entry->item != submission->items[i]) { /* submitted before: it has it, too */
            work_item_unref(submission->items[i]);
            submission->items[i] = work_item_ref(entry->item);
        }
        if (leader->is_ready && may_have_run(leader, entry)) {
            entry->not_before = instant_add(leader->began, leader->options.worker_lease);
        }
    }
    leader->is_place_due = true;
}

void leader_submit_all(struct work_leader *leader, int64_t now_unix_ms)
{
    struct leader_submission *submission, *next;

    for (submission = leader->submissions; submission; submission = next) {
        next = submission->hh.next;
        if (!submission->is_gone && !submission->is_doubted) {
            submit(leader, submission, now_unix_ms);
        }
    }
}

/* A submission is gone: with all the rest, if the ledger is gone, too. */
static void check_ledger(struct work_leader *leader)
{
    if (leader->is_loaded && leader->birth != 0 && !leader->is_checking) {
        leader->is_checking = true;
        (void)leader_queue(leader, WORK_READ, "ledger", 0);
    }
}

static void take_request(struct work_leader *leader, const char *id, bool is_there,
                         uint64_t revision)
{
    struct leader_request *request;

    HASH_FIND_STR(leader->requests, id, request);
    if (request && !is_there) {
        HASH_DEL(leader->requests, request);
        free(request);
    } else if (!request && is_there && strlen(id) < sizeof(request->id) &&
               (request = calloc(1, sizeof(*request)))) {
        memcpy(request->id, id, strlen(id) + 1);
        HASH_ADD_STR(leader->requests, id, request);
    }
    if (request && is_there) {
        request->revision = revision;
    }
}

/* NULL: it is odd, or there is no memory. */
static struct leader_submission *add_submission(struct work_leader *leader, const char *name,
                                                const void *data, size_t bytes, uint64_t revision,
                                                int64_t now_unix_ms)
{
    struct leader_submission *submission = calloc(1, sizeof(*submission));

    if (!submission || strlen(name) >= sizeof(submission->name) ||
        work_submission_read(&submission->items, &submission->count, name, data, bytes, NULL) !=
            BATON_OK) {
        leader->counters.odd_values++;
        free(submission);
        return NULL;
    }
    memcpy(submission->name, name, strlen(name) + 1);
    submission->revision = revision;
    HASH_ADD_STR(leader->submissions, name, submission);
    submit(leader, submission, now_unix_ms);
    return submission;
}

static void read_submission(struct work_leader *leader, struct leader_submission *submission)
{
    char key[LEADER_KEY_MAX];

    (void)snprintf(key, sizeof(key), "s/%s", submission->name);
    if (leader_queue(leader, WORK_READ, key, 0)) {
        submission->reads++;
    }
}

/* Another leader has written the bucket, and lacks an item of the submission. It does not know it,
 * or it has removed it since it ended, and the submission before that. */
static void doubt(struct work_leader *leader, struct leader_submission *submission, unsigned bucket)
{
    for (size_t i = 0; i < submission->count && !submission->is_doubted; i++) {
        const char *id = submission->items[i]->id;

        submission->is_doubted = ledger_bucket_of(id) == bucket && !ledger_find(leader->ledger, id);
    }
}

static void doubt_submissions(struct work_leader *leader, unsigned bucket)
{
    struct leader_submission *submission;

    for (submission = leader->submissions; submission; submission = submission->hh.next) {
        if (!submission->is_gone) {
            doubt(leader, submission, bucket);
            if (submission->is_doubted) {
                read_submission(leader, submission);
            }
        }
    }
}

/* It was deleted, and there is another one of its name. */
static struct leader_submission *replace_submission(struct work_leader *leader,
                                                    struct leader_submission *submission,
                                                    const void *data, size_t bytes,
                                                    uint64_t revision, int64_t now_unix_ms)
{
    struct leader_submission before = *submission;

    before.items = submission->items;
    submission->items = NULL;
    submission->count = 0;
    submission_free(leader, submission);
    submission = add_submission(leader, before.name, data, bytes, revision, now_unix_ms);
    for (size_t i = 0; i < before.count; i++) {
        struct ledger_entry *entry = ledger_find(leader->ledger, before.items[i]->id);

        work_item_unref(before.items[i]);
        if (entry && entry->item && entry->item->references == 1 &&
            !work_state_is_final(entry->state)) {
            take_request(leader, entry->id, true, 0); /* no submission has it any more */
        }
    }
    free((void *)before.items);
    return submission;
}

static void take_submission(struct work_leader *leader, const char *name, bool is_read,
                            const void *data, size_t bytes, uint64_t revision, int64_t now_unix_ms)
{
    struct leader_submission *submission;

    HASH_FIND_STR(leader->submissions, name, submission);
    if (submission && is_read) {
        submission->reads -= submission->reads > 0;
        submission->is_doubted = submission->is_doubted && submission->reads > 0;
    }
    if (!submission && data) {
        submission = add_submission(leader, name, data, bytes, revision, now_unix_ms);
    } else if (submission && data && revision > submission->revision) {
        submission = replace_submission(leader, submission, data, bytes, revision, now_unix_ms);
    } else if (submission && data && is_read && !submission->is_doubted && !submission->is_gone) {
        submit(leader, submission, now_unix_ms);
    } else if (submission && !data && !submission->is_deleting && submission->purges == 0) {
        submission->is_gone = true;
        check_ledger(leader);
    }
    if (submission && !is_read) {
        submission->is_watched = true;
    }
}

static void cancel(struct work_leader *leader, struct ledger_entry *entry, int64_t now_unix_ms)
{
    if (WORK_MUTANT(FORGETS_TO_CANCEL)) {
        return;
    }
    if (entry->state == WORK_IDLE) {
        leader->counters.cancelled++;
        ledger_finish(leader->ledger, entry, WORK_CANCELLED, 0, now_unix_ms);
    } else if (entry->state == WORK_PROCESSING) {
        leader_wish(leader, entry, WORK_CANCEL);
    }
}

static bool has_doubts(const struct work_leader *leader)
{
    const struct leader_submission *submission;

    for (submission = leader->submissions; submission; submission = submission->hh.next) {
        if (submission->is_doubted) {
            return true;
        }
    }
    return false;
}

enum { PURGES_WAITED = 6 }; /* for what may still be reported late */

/* The submission of an item that is not known may be reported later than the request, or it is
 * doubted. */
static bool is_done(const struct work_leader *leader, const struct leader_request *request,
                    const struct ledger_entry *entry)
{
    if (entry) {
        return work_state_is_final(entry->state) && leader_is_stored(leader, entry);
    }
    return (request->purges > PURGES_WAITED && !has_doubts(leader)) ||
           WORK_MUTANT(REQUEST_DONE_EARLY);
}

void leader_cancel_due(struct work_leader *leader, int64_t now_unix_ms)
{
    struct leader_request *request, *next;
    struct leader_submission *submission, *after;
    struct ledger_entry *entry;

    if (!leader->is_cancel_due || !leader->is_loaded) {
        return;
    }
    leader->is_cancel_due = false;
    for (request = leader->requests; request; request = next) {
        next = request->hh.next;
        entry = ledger_find(leader->ledger, request->id);
        if (entry) {
            cancel(leader, entry, now_unix_ms);
        }
        if (!request->is_deleting && is_done(leader, request, entry)) {
            request->is_deleting = true;
            queue_deletion(leader, 'c', request->id, request->revision);
        }
    }
    for (submission = leader->submissions; submission; submission = after) {
        after = submission->hh.next;
        bool is_cancelled = submission->is_gone && !leader->is_checking;

        for (size_t i = 0; is_cancelled && i < submission->count; i++) {
            entry = ledger_find(leader->ledger, submission->items[i]->id);
            if (entry && entry->item == submission->items[i]) {
                cancel(leader, entry, now_unix_ms);
            }
        }
    }
}

static void cancel_orphan(struct work_leader *leader, const struct ledger_entry *entry)
{
    struct leader_request *request;

    HASH_FIND_STR(leader->requests, entry->id, request);
    if (!request && !entry->item && !work_state_is_final(entry->state) &&
        !WORK_MUTANT(ORPHANS_STAY)) {
        take_request(leader, entry->id, true, 0); /* its key is not there */
    }
}

void leader_cancel_orphans(struct work_leader *leader)
{
    struct ledger_entry *entry;

    for (entry = ledger_next(leader->ledger, NULL); entry;
         entry = ledger_next(leader->ledger, entry)) {
        cancel_orphan(leader, entry);
    }
}

/* ---- What is over ---------------------------------------------------------------------------- */

/* Where others have no room, an entry is kept just until those who wait for it have seen its end.
 */
static bool is_old(const struct work_leader *leader, const struct ledger_entry *entry,
                   int64_t now_unix_ms)
{
    int64_t keep_ms = leader->options.keep.ns / 1000000;

    if (leader->is_crowded && keep_ms > CROWDED_KEEP_MS) {
        keep_ms = CROWDED_KEEP_MS;
    }
    return work_state_is_final(entry->state) && leader_is_stored(leader, entry) &&
           now_unix_ms - entry->since_unix_ms > keep_ms;
}

/* Its items may be removed once the submission is gone: otherwise they would begin anew. */
static bool is_over(const struct work_leader *leader, const struct leader_submission *submission,
                    int64_t now_unix_ms)
{
    for (size_t i = 0; i < submission->count; i++) {
        const struct ledger_entry *entry = ledger_find(leader->ledger, submission->items[i]->id);

        if (!entry && !submission->is_gone) {
            return false; /* there was no room for it yet */
        }
        if (entry && entry->item == submission->items[i] && !is_old(leader, entry, now_unix_ms)) {
            return false;
        }
    }
    return true;
}

/* Its result is dropped by the state in its time, unless a later item may have the same id. */
static void remove_entry(struct work_leader *leader, struct ledger_entry *entry)
{
    if (!entry->item || !entry->item->is_unique) {
        queue_deletion(leader, 'r', entry->id, UINT64_MAX);
    }
    queue_deletion(leader, 'k', entry->id, UINT64_MAX);
    ledger_remove(leader->ledger, entry);
}

enum { OF_ENTRY_AND_SUBMISSION = 2 };

/* An item that another submission has, too, stays until that one goes. */
static void remove_submission(struct work_leader *leader, struct leader_submission *submission)
{
    for (size_t i = 0; i < submission->count; i++) {
        struct ledger_entry *entry = ledger_find(leader->ledger, submission->items[i]->id);

        if (entry && entry->item == submission->items[i] && work_state_is_final(entry->state) &&
            (entry->item->references == OF_ENTRY_AND_SUBMISSION || WORK_MUTANT(SHARED_FORGOTTEN))) {
            remove_entry(leader, entry);
        }
    }
    submission_empty(submission);
    submission->is_gone = false;
    submission->purges = 1;
}

/* It was listed, but no watch has reported it since, not even that it is there: perhaps it was
 * deleted before the watch began. */
static void check_submission(struct work_leader *leader, struct leader_submission *submission)
{
    if ((!submission->is_watched || submission->is_doubted) && submission->reads == 0) {
        read_submission(leader, submission);
    }
}

static void purge_submission(struct work_leader *leader, struct leader_submission *submission,
                             int64_t now_unix_ms)
{
    if (submission->purges > 0) {
        if (submission->purges++ > PURGES_WAITED) {
            submission_free(leader, submission);
        }
        return;
    }
    check_submission(leader, submission);
    if (submission->is_deleting || !submission->is_watched ||
        !is_over(leader, submission, now_unix_ms)) {
        return;
    }
    if (!submission->is_gone) {
        submission->is_deleting = true;
        queue_deletion(leader, 's', submission->name, submission->revision);
    }
    if (submission->is_gone || WORK_MUTANT(FORGOTTEN_FIRST)) {
        remove_submission(leader, submission);
    }
}

/* An entry that no submission has: it was deleted, replaced or lost, or, if the entry was read a
 * moment ago, is not reported yet. */
static void purge_orphan(struct work_leader *leader, struct ledger_entry *entry,
                         int64_t now_unix_ms)
{
    if (entry->item && entry->item->references > 1) {
        entry->purges = 0;
    } else if (is_old(leader, entry, now_unix_ms)) {
        remove_entry(leader, entry);
    } else if (!entry->item && !work_state_is_final(entry->state) &&
               entry->purges++ == PURGES_WAITED) {
        cancel_orphan(leader, entry);
    }
}

void leader_purge(struct work_leader *leader, int64_t now_unix_ms)
{
    struct leader_submission *submission, *next;
    struct leader_request *request, *following;
    struct ledger_entry *entry, *after;

    for (request = leader->requests; request; request = following) {
        following = request->hh.next;
        request->purges++;
        leader->is_cancel_due = true;
    }
    for (submission = leader->submissions; submission; submission = next) {
        next = submission->hh.next;
        purge_submission(leader, submission, now_unix_ms);
    }
    for (entry = ledger_next(leader->ledger, NULL); entry; entry = after) {
        after = ledger_next(leader->ledger, entry);
        purge_orphan(leader, entry, now_unix_ms);
    }
    leader->is_crowded = false;
    leader_submit_all(leader, now_unix_ms); /* some may not have had room */
}

/* ---- What is read ---------------------------------------------------------------------------- */

static int bucket_of_key(const char *key)
{
    char *end;
    unsigned long number = strtoul(key, &end, 10);

    return strlen(key) == 2 && *end == '\0' && number < LEDGER_BUCKETS ? (int)number : -1;
}

/* Of a placing of ours that was not stored and one of another leader, the latter may be read, and
 * look the same: then its worker heard of it from that leader. */
static void disown(struct work_leader *leader, unsigned number)
{
    struct ledger_entry *entry;

    for (entry = ledger_next(leader->ledger, NULL); entry;
         entry = ledger_next(leader->ledger, entry)) {
        if (entry->bucket == number && !leader_is_stored(leader, entry)) {
            entry->is_ours = false;
        }
    }
}

/* It was there, or it was newer: the state has lost it, or its latest writes. */
static bool is_lost(const struct work_leader *leader, const struct leader_bucket *bucket,
                    const void *data, uint64_t revision)
{
    return leader->is_loaded && !WORK_MUTANT(LOSS_IGNORED) &&
           (data ? revision < bucket->revision : bucket->revision != 0);
}

static void take_bucket(struct work_leader *leader, unsigned number, const void *data, size_t bytes,
                        uint64_t revision, int64_t now_unix_ms)
{
    struct leader_bucket *bucket = &leader->buckets[number];

    if (leader->is_loaded && !bucket->is_reading) {
        return; /* what we write ourselves */
    }
    if (is_lost(leader, bucket, data, revision)) {
        leader->is_over = true;
        return;
    }
    disown(leader, number);
    bucket->revision = revision;
    if (ledger_decode(leader->ledger, number, data, bytes, NULL) != BATON_OK) {
        /* Where its items are is not known here: it is not written, and nothing of it is sent. */
        leader->counters.odd_values++;
        bucket->is_reading = true;
        return;
    }
    bucket->is_reading = false;
    bucket->stored = ledger_change(leader->ledger);
    if (leader->is_loaded && !data) {
        ledger_touch(leader->ledger, number); /* it was not made */
    }
    leader->is_over =
        leader->is_over || (ledger_writer(leader->ledger, number) > leader->options.epoch &&
                            !WORK_MUTANT(LATER_LEADER_IGNORED));
    if (leader->is_loaded) {
        if (data && ledger_writer(leader->ledger, number) != leader->options.epoch) {
            doubt_submissions(leader, number);
        }
        leader_submit_all(leader, now_unix_ms);
        leader_know_places(leader);
        leader_lose_ended(leader, now_unix_ms);
        leader_acknowledge(leader);
        leader->is_place_due = true;
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

/* The result of an attempt before: it was stored first, and so it is the item's. */
static void take_result(struct work_leader *leader, const char *id, const void *data, size_t bytes,
                        instant now, int64_t now_unix_ms)
{
    struct leader_result *result;
    struct work_result stored = {0};

    HASH_FIND_STR(leader->results, id, result);
    if (!result || result->state != RESULT_READING) {
        return;
    }
    if (!data) {
        result->state = RESULT_WAITS; /* its time was over */
        return;
    }
    if (work_result_read(&stored, data, bytes, NULL) == BATON_OK) {
        work_result_fini(&result->result);
        result->result = stored;
    } else {
        leader->counters.odd_values++;
    }
    leader_result_stored(leader, result, now, now_unix_ms);
}

static void take_birth(struct work_leader *leader, const void *data, size_t bytes,
                       uint64_t revision)
{
    char text[32] = "";
    uint64_t birth;

    if (data) {
        memcpy(text, data, bytes < sizeof(text) ? bytes : sizeof(text) - 1);
    }
    birth = strtoull(text, NULL, 16);
    if (leader->is_loaded && leader->birth != 0) {
        leader->is_checking = false;
        leader->is_over = leader->is_over || birth != leader->birth;
        return;
    }
    leader->birth = birth;
    leader->birth_revision = data ? revision : 0;
    leader->is_born = birth != 0;
    if (!leader->is_loaded && (leader->asked == 0 || leader->asked_ledger != birth)) {
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
        take_birth(leader, data, bytes, revision);
        return;
    }
    if (key[0] == '\0' || key[1] != '/') {
        return;
    }
    if (key[0] == 'b' && (number = bucket_of_key(name)) >= 0) {
        take_bucket(leader, (unsigned)number, data, bytes, revision, now_unix_ms);
    } else if (key[0] == 'r') {
        take_result(leader, name, data, bytes, now, now_unix_ms);
    } else if (key[0] == 's') {
        take_submission(leader, name, is_read, data, bytes, revision, now_unix_ms);
    } else if (key[0] == 'c') {
        take_request(leader, name, data != NULL, revision);
    } else if (key[0] == 'd' && (known = leader_know(leader, name))) {
        known->is_draining = data != NULL;
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
            result->state = RESULT_WRITING;
            buffer_clear(&leader->out);
            work_result_write(&result->result, result->worker, entry->attempt, &leader->out);
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

/* A ledger that was rebuilt gets its birth when all of it is stored; items are placed meanwhile, by
 * writes of its buckets like any other. */
static bool next_birth(struct work_leader *leader, struct work_output *ret)
{
    if (!leader->is_rebuilt || leader->birth != 0 || leader->is_born || !is_made(leader)) {
        return false;
    }
    leader->is_born = true;
    buffer_clear(&leader->out);
    buffer_printf(&leader->out, "%016llx", (unsigned long long)leader->chosen);
    return put(leader, "ledger", leader->birth_revision, SPAN_NS(0), ret);
}

bool leader_next_put(struct work_leader *leader, struct work_output *ret)
{
    if (!leader->is_ready) { /* a bucket is written once, with what is placed then */
        return false;
    }
    return next_bucket(leader, ret) || next_result(leader, ret) || next_birth(leader, ret);
}

static void bucket_stored(struct work_leader *leader, struct leader_bucket *bucket, const char *key,
                          int code, uint64_t revision)
{
    struct leader_known *known, *next;

    bucket->is_written = code == BATON_OK;
    if (code == BATON_OK) {
        bucket->revision = revision;
        bucket->stored = bucket->storing;
        leader_acknowledge(leader);
        for (known = leader->known; known; known = next) {
            next = known->hh.next;
            known->is_due = known->is_due || known->is_waiting;
        }
    } else {
        leader->counters.conflicts += code == BATON_ECONFLICT;
        bucket->is_reading = true;
        (void)leader_queue(leader, WORK_READ, key, 0);
    }
    bucket->is_storing = false;
}

static void birth_stored(struct work_leader *leader, int code, uint64_t revision)
{
    if (code == BATON_OK) {
        leader->birth = leader->chosen;
        leader->birth_revision = revision;
        leader->is_ask_due = true;        /* if it is lost, all workers know that there was one */
    } else if (code == BATON_ECONFLICT) { /* by another leader, or by us when no reply came */
        (void)leader_queue(leader, WORK_READ, "ledger", 0);
    } else {
        leader->is_born = false;
    }
}

static void result_stored(struct work_leader *leader, const char *key, int code, instant now,
                          int64_t now_unix_ms)
{
    struct leader_result *result;

    HASH_FIND_STR(leader->results, key + 2, result);
    if (!result || result->state != RESULT_WRITING) {
        return;
    }
    if (code == BATON_OK) {
        leader_result_stored(leader, result, now, now_unix_ms);
    } else {
        result->state = RESULT_READING;
        (void)leader_queue(leader, WORK_READ, key, 0);
    }
}

/* A deletion: what it was for is done, or is tried again. */
static void deletion_stored(struct work_leader *leader, const char *key, int code)
{
    struct leader_submission *submission;
    struct leader_request *request;

    if (key[0] == 's') {
        HASH_FIND_STR(leader->submissions, key + 2, submission);
        if (submission && submission->is_deleting) {
            submission->is_deleting = false;
            if (code == BATON_OK) {
                remove_submission(leader, submission);
            }
        }
    } else if (key[0] == 'c') {
        HASH_FIND_STR(leader->requests, key + 2, request);
        if (request && request->is_deleting) {
            request->is_deleting = false;
            if (code == BATON_OK) {
                take_request(leader, key + 2, false, 0);
            }
        }
    }
}

void work_leader_stored(struct work_leader *leader, const char *key, int code, uint64_t revision,
                        instant now, int64_t now_unix_ms)
{
    int number;

    leader->is_cancel_due = true;
    if (strcmp(key, "ledger") == 0) {
        birth_stored(leader, code, revision);
    } else if (key[0] == 'b' && (number = bucket_of_key(key + 2)) >= 0) {
        bucket_stored(leader, &leader->buckets[number], key, code, revision);
    } else if (key[0] == 'r') {
        result_stored(leader, key, code, now, now_unix_ms);
    } else {
        deletion_stored(leader, key, code);
    }
}

void leader_store_free(struct work_leader *leader)
{
    struct leader_submission *submission, *next;
    struct leader_request *request, *after;

    submission = leader->submissions;
    HASH_CLEAR(hh, leader->submissions);
    for (; submission; submission = next) {
        next = submission->hh.next;
        submission_empty(submission);
        free(submission);
    }
    request = leader->requests;
    HASH_CLEAR(hh, leader->requests);
    for (; request; request = after) {
        after = request->hh.next;
        free(request);
    }
    while (leader->queue) {
        struct leader_queued *queued = leader->queue;

        DL_DELETE(leader->queue, queued);
        free(queued);
    }
}

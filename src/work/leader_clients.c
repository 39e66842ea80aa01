#include "work/leader_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    CROWDED_KEEP_MS = 15000,
    PURGES_WAITED = 6, /* for what may still be reported late */
    OF_ENTRY_AND_SUBMISSION = 2
};

/* A deletion of "c/ID", "s/NAME", …. */
static void queue_deletion(struct work_leader *leader, char kind, const char *name,
                           uint64_t revision)
{
    char key[LEADER_KEY_MAX];

    (void)snprintf(key, sizeof(key), "%c/%.*s", kind, WORK_ID_MAX, name);
    leader_queue(leader, WORK_PUT, key, revision);
}

/* ---- What comes ------------------------------------------------------------------------------ */

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

static void submit(struct work_leader *leader, struct leader_submission *submission,
                   int64_t now_unix_ms)
{
    for (size_t i = 0; i < submission->count; i++) {
        struct ledger_entry *entry;

        int code = ledger_submit(leader->ledger, submission->items[i], now_unix_ms, &entry);

        if (code != BATON_OK) {
            leader->is_over = leader->is_over || code == BATON_ENOMEM;
            leader->is_crowded = leader->is_crowded || code == BATON_EFULL;
            leader->counters.odd_values += code == BATON_EEXIST; /* another item has this id */
            continue;
        }
        if (entry->item != submission->items[i]) { /* submitted before: it has it, too */
            work_item_unref(submission->items[i]);
            submission->items[i] = work_item_ref(entry->item);
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

static void read_submission(struct work_leader *leader, struct leader_submission *submission)
{
    char key[LEADER_KEY_MAX];

    (void)snprintf(key, sizeof(key), "s/%s", submission->name);
    leader_queue(leader, WORK_READ, key, 0);
    submission->reads++;
}

/* A submission is gone: with all the rest, if the ledger is gone, too. */
static void lose_submission(struct work_leader *leader, struct leader_submission *submission)
{
    submission->is_gone = true;
    if (submission->is_early && !WORK_MUTANT(EARLY_LOSS_IGNORED)) {
        leader_end_as_lost(leader);
    } else if (leader->is_loaded) {
        leader_check_ledger(leader);
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

void leader_doubt_submissions(struct work_leader *leader, unsigned bucket)
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

/* NULL: it is odd, or there is no memory. */
static struct leader_submission *add_submission(struct work_leader *leader, const char *name,
                                                const void *data, size_t bytes, uint64_t revision,
                                                int64_t now_unix_ms)
{
    struct leader_submission *submission = calloc(1, sizeof(*submission));
    int code =
        !submission ? BATON_ENOMEM
        : strlen(name) >= sizeof(submission->name)
            ? BATON_EINVAL
            : work_submission_read(&submission->items, &submission->count, name, data, bytes, NULL);

    if (code != BATON_OK) {
        leader->is_over = leader->is_over || code == BATON_ENOMEM;
        leader->counters.odd_values += code != BATON_ENOMEM;
        free(submission);
        return NULL;
    }
    memcpy(submission->name, name, strlen(name) + 1);
    submission->revision = revision;
    submission->heard = ++leader->heard;
    submission->is_early = leader->mark == 0;
    HASH_ADD_STR(leader->submissions, name, submission);
    if (!submission->hh.tbl) {
        leader->is_over = true;
        submission_empty(submission);
        free(submission);
        return NULL;
    }
    submit(leader, submission, now_unix_ms);
    return submission;
}

static struct leader_request *add_request(struct work_leader *leader, const char *id)
{
    struct leader_request *request = calloc(1, sizeof(*request));

    if (request) {
        memcpy(request->id, id, strlen(id) + 1);
        HASH_ADD_STR(leader->requests, id, request);
    }
    if (!request || !request->hh.tbl) {
        leader->is_over = true;
        free(request);
        return NULL;
    }
    return request;
}

void leader_take_request(struct work_leader *leader, const char *id, bool is_there,
                         uint64_t revision)
{
    struct leader_request *request;

    HASH_FIND_STR(leader->requests, id, request);
    if (request && !is_there) {
        HASH_DEL(leader->requests, request);
        free(request);
    } else if (!request && is_there && strlen(id) < sizeof(request->id)) {
        request = add_request(leader, id);
    }
    if (request && is_there && revision != request->revision) {
        request->revision = revision;
        request->heard = ++leader->heard;
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
            leader_take_request(leader, entry->id, true, 0); /* no submission has it any more */
        }
    }
    free((void *)before.items);
    return submission;
}

void leader_take_submission(struct work_leader *leader, const char *name, bool is_read,
                            const void *data, size_t bytes, uint64_t revision, int64_t now_unix_ms)
{
    struct leader_submission *submission;

    HASH_FIND_STR(leader->submissions, name, submission);
    if (submission && is_read) {
        submission->reads -= submission->reads > 0;
        submission->is_doubted = submission->is_doubted && submission->reads > 0;
        submission->is_early = submission->is_early && (leader->mark == 0 || !data);
    }
    if (!submission && data) {
        submission = add_submission(leader, name, data, bytes, revision, now_unix_ms);
    } else if (submission && data && revision > submission->revision) {
        submission = replace_submission(leader, submission, data, bytes, revision, now_unix_ms);
    } else if (submission && data && is_read && !submission->is_doubted && !submission->is_gone) {
        submit(leader, submission, now_unix_ms);
    } else if (submission && !data && !submission->is_deleting && submission->purges == 0) {
        lose_submission(leader, submission);
    }
    if (submission && !is_read) {
        submission->is_watched = true;
    }
}

void leader_set_early(struct work_leader *leader)
{
    struct leader_submission *submission;

    for (submission = leader->submissions; submission; submission = submission->hh.next) {
        submission->is_early = true;
        if (submission->is_gone) { /* perhaps it was not deleted */
            leader_end_as_lost(leader);
        }
    }
}

void leader_read_early(struct work_leader *leader)
{
    struct leader_submission *submission;

    for (submission = leader->submissions; submission; submission = submission->hh.next) {
        if (submission->is_early && !submission->is_gone) {
            read_submission(leader, submission);
        }
    }
}

bool leader_has_early(const struct work_leader *leader)
{
    const struct leader_submission *submission;

    for (submission = leader->submissions; submission; submission = submission->hh.next) {
        if (submission->is_early) {
            return true;
        }
    }
    return false;
}

/* ---- What is cancelled ----------------------------------------------------------------------- */

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

/* A watch is late where leases are long. */
static unsigned purges_waited(const struct work_leader *leader)
{
    int64_t leases = 4 * leader->options.worker_lease.ns / SPAN_S(LEADER_PURGE_S).ns;

    return leases > PURGES_WAITED ? (unsigned)leases : PURGES_WAITED;
}

/* The submission of an item that is not known may be reported later than the request, or it is
 * doubted. */
static bool is_done(struct work_leader *leader, const struct leader_request *request,
                    const struct ledger_entry *entry)
{
    if (entry) {
        return work_state_is_final(entry->state) &&
               leader_is_still_stored(leader, entry, request->heard);
    }
    return (request->purges > purges_waited(leader) && !has_doubts(leader)) ||
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
            request->deleted = request->revision;
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
        leader_take_request(leader, entry->id, true, 0); /* its key is not there */
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
static bool is_over(struct work_leader *leader, const struct leader_submission *submission,
                    int64_t now_unix_ms)
{
    bool is_certain = true;

    for (size_t i = 0; i < submission->count; i++) {
        const struct ledger_entry *entry = ledger_find(leader->ledger, submission->items[i]->id);

        if (!entry && !submission->is_gone) {
            return false; /* there was no room for it yet */
        }
        if (!entry || entry->item != submission->items[i]) {
            continue;
        }
        if (!is_old(leader, entry, now_unix_ms)) {
            return false;
        }
        is_certain &=
            submission->is_gone || leader_is_still_stored(leader, entry, submission->heard);
    }
    return is_certain;
}

/* An item that another submission has, too, stays until that one goes. */
static void remove_submission(struct work_leader *leader, struct leader_submission *submission)
{
    for (size_t i = 0; i < submission->count; i++) {
        struct ledger_entry *entry = ledger_find(leader->ledger, submission->items[i]->id);

        if (entry && entry->item == submission->items[i] && work_state_is_final(entry->state) &&
            (entry->item->references == OF_ENTRY_AND_SUBMISSION || WORK_MUTANT(SHARED_FORGOTTEN))) {
            leader_remove_entry(leader, entry);
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
    if ((!submission->is_watched || submission->is_doubted || submission->is_early) &&
        submission->reads == 0) {
        read_submission(leader, submission);
    }
}

static void purge_submission(struct work_leader *leader, struct leader_submission *submission,
                             int64_t now_unix_ms)
{
    if (submission->purges > 0) {
        if (submission->purges++ > purges_waited(leader)) {
            submission_free(leader, submission);
        }
        return;
    }
    check_submission(leader, submission);
    if (submission->is_deleting || !submission->is_watched || submission->is_doubted ||
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
        leader_remove_entry(leader, entry);
    } else if (!entry->item && !work_state_is_final(entry->state) &&
               entry->purges++ == purges_waited(leader)) {
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

/* What it was for is done, or is tried again. */
void leader_deletion_stored(struct work_leader *leader, const char *key, int code)
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
            if (code == BATON_OK && request->deleted == request->revision) {
                leader_take_request(leader, key + 2, false, 0);
            }
        }
    }
}

void leader_clients_free(struct work_leader *leader)
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
}

#include "work/leader_int.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct leader_known *leader_known(const struct work_leader *leader, const char *worker)
{
    struct leader_known *known;

    HASH_FIND_STR(leader->known, worker, known);
    return known;
}

struct leader_known *leader_know(struct work_leader *leader, const char *worker)
{
    struct leader_known *known = leader_known(leader, worker);

    if (known || strlen(worker) >= sizeof(known->name)) {
        return known;
    }
    known = calloc(1, sizeof(*known));
    if (known) {
        memcpy(known->name, worker, strlen(worker) + 1);
        HASH_ADD_STR(leader->known, name, known);
    }
    if (!known || !known->hh.tbl) {
        leader->is_over = true;
        free(known);
        return NULL;
    }
    return known;
}

void leader_note(struct leader_note **list, const char *id, uint64_t epoch)
{
    size_t bytes = strlen(id) + 1;
    struct leader_note *note = calloc(1, sizeof(*note) + bytes);

    if (note) { /* otherwise the next report brings it up again */
        memcpy(note->id, id, bytes);
        note->epoch = epoch;
        LL_PREPEND(*list, note);
    }
}

void leader_notes_free(struct leader_note **list)
{
    while (*list) {
        struct leader_note *note = *list;

        LL_DELETE(*list, note);
        free(note);
    }
}

void leader_forget(struct work_leader *leader, struct leader_known *known)
{
    leader_notes_free(&known->stops);
    leader_notes_free(&known->acks);
    HASH_DEL(leader->known, known);
    free(known);
}

void leader_enter(struct work_leader *leader, struct leader_known *known)
{
    if (!known->is_entered) {
        known->is_entered = true;
        leader_queue(leader, WORK_ENTER, known->name, 0);
    }
}

bool leader_is_reachable(const struct leader_known *known)
{
    return known->is_heard && !known->is_over;
}

static size_t items_of(const struct work_leader *leader, const struct leader_known *known)
{
    const struct ledger_place *place =
        ledger_place_find(leader->ledger, known->name, known->session);

    return place ? ledger_place_count(place) : 0;
}

void leader_drain(struct work_leader *leader, struct leader_known *known, bool is_drained)
{
    bool is_there = known->is_entered || (known->session != 0 && !known->is_over);

    known->is_draining = is_drained;
    if (!is_drained && !is_there && items_of(leader, known) == 0) {
        leader_forget(leader, known); /* it was known for that alone */
    }
}

/* Loses what the ledger has at one session. */
static size_t lose(struct work_leader *leader, const char *worker, uint64_t session,
                   int64_t now_unix_ms)
{
    const struct ledger_place *place = ledger_place_find(leader->ledger, worker, session);
    struct ledger_entry *entry, *next;
    size_t count = 0;

    if (!place) {
        return 0;
    }
    for (entry = ledger_place_entries(place); entry; entry = next) {
        enum work_wish wish = entry->wish;

        next = entry->next;
        count++;
        if (wish == WORK_CANCEL) {
            leader->counters.cancelled++;
            ledger_finish(leader->ledger, entry, WORK_CANCELLED, entry->code, now_unix_ms);
        } else {
            leader->counters.lost++;
            ledger_lose(leader->ledger, entry, now_unix_ms);
        }
    }
    leader->is_place_due = true;
    return count;
}

/* A place of the worker whose session is over; its memory ends with its last entry. */
static const struct ledger_place *ended_place(const struct work_leader *leader)
{
    const struct ledger_place *place;

    for (place = ledger_place_next(leader->ledger, NULL); place;
         place = ledger_place_next(leader->ledger, place)) {
        if (ledger_has_ended(leader->ledger, ledger_place_worker(place),
                             ledger_place_session(place))) {
            return place;
        }
    }
    return NULL;
}

void leader_lose_ended(struct work_leader *leader, int64_t now_unix_ms)
{
    const struct ledger_place *place;

    while ((place = ended_place(leader))) {
        char worker[BATON_NAME_MAX] = "";

        memcpy(worker, ledger_place_worker(place), strlen(ledger_place_worker(place)) + 1);
        leader->counters.failed_workers +=
            lose(leader, worker, ledger_place_session(place), now_unix_ms) > 0;
    }
}

void leader_sessions_end(struct work_leader *leader, struct leader_known *known, uint64_t session,
                         int64_t now_unix_ms)
{
    if (ledger_end_sessions(leader->ledger, known->name, session) != BATON_OK) {
        leader->is_over = true; /* what it had would never be placed anew */
    }
    if (known->session <= session) {
        known->is_over = true;
        known->is_awaited = false;
        leader_notes_free(&known->stops);
        leader_notes_free(&known->acks);
    }
    leader_lose_ended(leader, now_unix_ms);
}

void leader_know_session(struct leader_known *known, uint64_t session)
{
    known->session = session;
    known->is_heard = known->is_over = known->is_ours = false;
    known->seen = known->told = (struct work_number){0};
}

void work_leader_heard(struct work_leader *leader, const char *worker, uint64_t session,
                       uint64_t ledger)
{
    struct leader_known *known = leader_know(leader, worker);

    leader->was_lost = leader->was_lost || ledger != 0;
    if (known && session > known->session) {
        leader_know_session(known, session);
        known->is_awaited = true;
    }
}

/* Another leader has placed items there. It is not for us to tell their worker: they may have ended
 * since. A report that lacks them counts once the worker has heard our ask, after which it takes no
 * message of an earlier leader: the one that was sent while all was loaded, or the next one. */
static void take_over(struct work_leader *leader, const struct ledger_place *place, bool is_asked)
{
    const struct work_number ask = {leader->options.epoch,
                                    is_asked ? leader->asked : leader->messages + 1};
    struct ledger_entry *entry;

    for (entry = ledger_place_entries(place); entry; entry = entry->next) {
        if (!entry->is_ours && entry->wish == WORK_STAY && entry->told.epoch == 0 &&
            !WORK_MUTANT(FOREIGN_PLACING_SENT)) {
            entry->told = ask;
            leader->is_ask_due = leader->is_ask_due || !is_asked;
        }
    }
}

void leader_know_places(struct work_leader *leader)
{
    const struct ledger_place *place;
    struct leader_known *known, *next;

    for (place = ledger_place_next(leader->ledger, NULL); place;
         place = ledger_place_next(leader->ledger, place)) {
        take_over(leader, place, leader->asked != 0 && !leader->is_ready);
        if ((known = leader_know(leader, ledger_place_worker(place))) &&
            ledger_place_session(place) > known->session) {
            leader_know_session(known, ledger_place_session(place));
            known->is_awaited = true;
        }
    }
    for (known = leader->known; known; known = next) {
        next = known->hh.next;
        if (known->session != 0) {
            leader_enter(leader, known);
        }
    }
}

void work_leader_session(struct work_leader *leader, const char *worker, uint64_t epoch,
                         bool is_ours, instant now, int64_t now_unix_ms)
{
    struct leader_known *known = leader_known(leader, worker);

    (void)now;
    if (!known || epoch == 0) {
        return;
    }
    known->is_ours = is_ours;
    leader_sessions_end(leader, known, is_ours ? epoch : epoch - 1, now_unix_ms);
    if (!is_ours || !leader->is_loaded) {
        return;
    }
    /* Nothing of the worker's is in the ledger any more, so its next life may have its election. */
    known->is_entered = known->is_ours = false;
    leader_queue(leader, WORK_LEAVE, known->name, 0);
    if (!known->is_draining && items_of(leader, known) == 0) {
        leader_forget(leader, known);
    } else {
        known->is_heard = false;
    }
}

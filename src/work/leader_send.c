#include "work/leader_int.h"

#include <stdlib.h>
#include <string.h>

enum { SEND_ITEMS_MAX = 2000 };

/* Bytes that an item takes in a message, at most: all but its texts is short. */
static size_t bytes_of(const struct work_item *item)
{
    size_t bytes = 512 + 2 * strlen(item->id) + strlen(item->needs) +
                   (item->together ? strlen(item->together) : 0) + 2 * item->body_bytes;

    for (char **key = item->keys; key && *key; key++) {
        bytes += strlen(*key) + 4;
    }
    return bytes;
}

static struct work_number next_number(struct work_leader *leader, struct leader_known *known,
                                      instant now)
{
    known->told = (struct work_number){leader->options.epoch, ++leader->messages};
    known->told_at = now;
    return known->told;
}

/* A worker that has something of a ledger knows one, though it may not be complete yet. */
static uint64_t ledger_of(const struct work_leader *leader)
{
    return leader->mark;
}

static bool give(struct work_leader *leader, struct leader_known *known,
                 const struct work_message *message, struct work_output *ret)
{
    buffer_clear(&leader->out);
    work_message_write(message, &leader->out);
    *ret = (struct work_output){.type = WORK_SEND,
                                .worker = known ? known->name : NULL,
                                .data = leader->out.data,
                                .bytes = leader->out.bytes};
    return !leader->out.failed;
}

static struct ledger_entry *entries_at(const struct work_leader *leader,
                                       const struct leader_known *known)
{
    const struct ledger_place *place =
        ledger_place_find(leader->ledger, known->name, known->session);

    return place ? ledger_place_entries(place) : NULL;
}

/* What its worker is to hear. */
static bool is_untold(const struct ledger_entry *entry, bool is_stop)
{
    return entry->told.epoch == 0 && (entry->wish != WORK_STAY) == is_stop &&
           (is_stop || (entry->item && (entry->is_ours || WORK_MUTANT(FOREIGN_PLACING_SENT))));
}

static size_t count_untold(const struct work_leader *leader, const struct leader_known *known,
                           bool is_stop)
{
    size_t count = 0;

    for (const struct ledger_entry *entry = entries_at(leader, known);
         entry && count < SEND_ITEMS_MAX; entry = entry->next) {
        count += is_untold(entry, is_stop);
    }
    return count;
}

/* The placings that it was not told of; false: there are none. */
static bool assign(struct work_leader *leader, struct leader_known *known, instant now,
                   struct work_output *ret)
{
    size_t room = count_untold(leader, known, false);
    struct work_assignment *assignments = room > 0 ? calloc(room, sizeof(*assignments)) : NULL;
    struct work_message message = {.type = WORK_ASSIGN,
                                   .session = known->session,
                                   .ledger = ledger_of(leader),
                                   .assignments = assignments};
    size_t bytes = 0;
    bool is_given;

    known->is_waiting = false;
    for (struct ledger_entry *entry = assignments ? entries_at(leader, known) : NULL;
         entry && message.count < room; entry = entry->next) {
        if (!is_untold(entry, false)) {
            continue;
        }
        if (!leader_is_stored(leader, entry)) {
            known->is_waiting = true;
            continue;
        }
        if (message.count > 0 && bytes + bytes_of(entry->item) > WORK_MESSAGE_MAX) {
            break;
        }
        if (message.count == 0) {
            message.number = next_number(leader, known, now);
        }
        bytes += bytes_of(entry->item);
        assignments[message.count++] = (struct work_assignment){
            .item = entry->item, .epoch = entry->epoch, .attempt = entry->attempt};
        entry->told = message.number;
        entry->deadline =
            entry->item->timeout.ns > 0 ? instant_add(now, entry->item->timeout) : INSTANT_NEVER;
    }
    is_given = message.count > 0 && give(leader, known, &message, ret);
    free(assignments);
    return is_given;
}

static size_t count_notes(const struct leader_note *note)
{
    size_t count = 0;

    for (; note && count < SEND_ITEMS_MAX; note = note->next) {
        count++;
    }
    return count;
}

static size_t notes_take(struct leader_note *note, struct work_claim *ids, size_t room)
{
    size_t count = 0;

    for (; note && count < room; note = note->next) {
        ids[count++] = (struct work_claim){.id = note->id, .epoch = note->epoch};
    }
    return count;
}

/* What it is to stop: items that are wanted elsewhere or not at all, and copies that the ledger
 * does not know. */
static bool stop(struct work_leader *leader, struct leader_known *known, instant now,
                 struct work_output *ret)
{
    size_t noted = count_notes(known->stops);
    size_t wanted = noted + count_untold(leader, known, true);
    size_t room = wanted < SEND_ITEMS_MAX ? wanted : SEND_ITEMS_MAX;
    struct work_claim *ids = room > 0 ? calloc(room, sizeof(*ids)) : NULL;
    struct work_message message = {
        .type = WORK_STOP, .session = known->session, .ledger = ledger_of(leader), .ids = ids};
    bool is_given;

    message.count = ids ? notes_take(known->stops, ids, noted) : 0;
    for (struct ledger_entry *entry = ids ? entries_at(leader, known) : NULL;
         entry && message.count < room; entry = entry->next) {
        if (is_untold(entry, true)) {
            ids[message.count++] = (struct work_claim){.id = entry->id, .epoch = entry->epoch};
        }
    }
    if (message.count > 0) {
        message.number = next_number(leader, known, now);
        for (size_t i = 0; i < message.count; i++) {
            struct ledger_entry *entry = ledger_find(leader->ledger, ids[i].id);

            if (entry && entry->epoch == ids[i].epoch && entry->wish != WORK_STAY) {
                entry->told = message.number;
            }
        }
    }
    is_given = message.count > 0 && give(leader, known, &message, ret);
    leader_notes_free(&known->stops);
    free(ids);
    return is_given;
}

static bool acknowledge(struct work_leader *leader, struct leader_known *known, instant now,
                        struct work_output *ret)
{
    size_t room = count_notes(known->acks);
    struct work_claim *ids = room > 0 ? calloc(room, sizeof(*ids)) : NULL;
    struct work_message message = {
        .type = WORK_ACK, .session = known->session, .ledger = ledger_of(leader), .ids = ids};
    bool is_given = false;

    if (ids) {
        message.count = notes_take(known->acks, ids, room);
        message.number = next_number(leader, known, now);
        is_given = give(leader, known, &message, ret);
    }
    leader_notes_free(&known->acks);
    free(ids);
    return is_given;
}

/* All workers report at once; with their items, if there is no ledger. */
static bool ask(struct work_leader *leader, struct work_output *ret)
{
    struct work_message message = {
        .type = WORK_ASK,
        .number = {leader->options.epoch, ++leader->messages},
        .ledger = leader_complete_ledger(leader),
    };

    leader->is_ask_due = false;
    leader->asked = message.number.count;
    leader->asked_ledger = leader_complete_ledger(leader);
    return give(leader, NULL, &message, ret);
}

bool leader_next_message(struct work_leader *leader, instant now, struct work_output *ret)
{
    struct leader_known *known, *next;

    if (leader->is_ask_due && ask(leader, ret)) {
        return true;
    }
    if (!leader->is_loaded) {
        return false;
    }
    for (known = leader->known; known; known = next) {
        next = known->hh.next;
        if (!known->is_due || !leader_is_reachable(known)) {
            continue;
        }
        if ((leader->is_ready && assign(leader, known, now, ret)) ||
            stop(leader, known, now, ret) || acknowledge(leader, known, now, ret)) {
            return true;
        }
        known->is_due = false; /* what waits for its put makes it due again */
    }
    return false;
}

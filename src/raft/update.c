/* The outbox of a step: gathered while the step runs, and put in order at its end.
 *
 * Pointers to entries are set only at the end, because the log may grow, and move, until then.
 */
#include "raft/update.h"

#include "raft/log.h"
#include "raft/mutants.h"
#include "raft/state.h"

#include <stdlib.h>
#include <string.h>

void update_begin(struct raft *raft)
{
    struct outbox *out = &raft->out;

    out->message_count = 0;
    out->event_count = 0;
    out->read_count = 0;
    out->hard_changed = false;
    out->hard_needed = false;
    out->snapshot_replaced = false;
    out->truncates = false;
    out->append_from = 0;
    out->out_of_memory = false;
    raft->install = false;
    raft->offer = false;
}

void update_fini(struct raft *raft)
{
    free(raft->out.messages);
    free(raft->out.events);
    free(raft->out.reads);
}

/* Adds a zeroed item to an array that grows; NULL when out of memory. */
static void *place(void **array, size_t *count, size_t *capacity, size_t size)
{
    void *item;

    if (*count == *capacity) {
        size_t wanted = *capacity ? *capacity * 2 : 16;
        void *grown = realloc(*array, wanted * size);
        if (!grown) {
            return NULL;
        }
        *array = grown;
        *capacity = wanted;
    }
    item = (char *)*array + (*count)++ * size;
    memset(item, 0, size);
    return item;
}

struct raft_message *update_message(struct raft *raft, enum raft_message_type type, raft_id to,
                                    enum message_after after)
{
    struct outbox *out = &raft->out;
    struct raft_message *message = place((void **)&out->messages, &out->message_count,
                                         &out->message_capacity, sizeof(*message));
    if (!message) {
        out->out_of_memory = true;
        return NULL;
    }
    message->type = type;
    message->from = raft->id;
    message->to = to;
    message->incarnation = raft->incarnation;
    message->term = raft->hard.term;
    message->after_write = after;
    return message;
}

struct raft_event *update_event(struct raft *raft, enum raft_event_type type)
{
    static _Thread_local struct raft_event nowhere; /* takes an event that there is no memory for */
    struct outbox *out = &raft->out;
    struct raft_event *event =
        place((void **)&out->events, &out->event_count, &out->event_capacity, sizeof(*event));
    if (!event) {
        out->out_of_memory = true;
        event = &nowhere;
    }
    event->type = type;
    return event;
}

void update_read(struct raft *raft, uint64_t context, raft_index index)
{
    struct outbox *out = &raft->out;
    struct raft_read *read =
        place((void **)&out->reads, &out->read_count, &out->read_capacity, sizeof(*read));
    if (!read) {
        out->out_of_memory = true;
        return;
    }
    *read = (struct raft_read){.context = context, .index = index};
}

void update_hard_changed(struct raft *raft, enum hard_change change)
{
    if (change == HARD_LATER) {
        raft->store_at = instant_min(raft->store_at,
                                     instant_add(raft->now, raft->settings.election_timeout_min));
        return;
    }
    raft->out.hard_changed = true;
    raft->out.hard_needed |= change == HARD_NEEDED;
}

uint64_t update_write_id(const struct raft *raft)
{
    return raft->last_write + 1;
}

static bool says_something_of_log(const struct raft *raft)
{
    for (size_t i = 0; i < raft->out.message_count; i++) {
        if (raft->out.messages[i].after_write == AFTER_ALL) {
            return true;
        }
    }
    return false;
}

static const struct raft_write *finish_write(struct raft *raft)
{
    struct outbox *out = &raft->out;
    bool is_log_changed = out->snapshot_replaced || out->truncates || out->append_from > 0;

    if (raft->storage_failed) {
        raft->store_at = INSTANT_NEVER;
        return NULL;
    }
    if (raft->store_at.ns != INSTANT_NEVER.ns &&
        (is_log_changed || !instant_before(raft->now, raft->store_at) ||
         says_something_of_log(raft))) {
        out->hard_changed = true;
    }
    if (!out->hard_changed && !is_log_changed) {
        return NULL;
    }
    if (out->hard_changed) {
        raft->store_at = INSTANT_NEVER;
    }
    out->hard = raft->hard;
    out->snapshot = raft->snapshot;
    out->write = (struct raft_write){
        .id = ++raft->last_write,
        .hard = out->hard_changed ? &out->hard : NULL,
        .snapshot = out->snapshot_replaced ? &out->snapshot : NULL,
        .truncates = out->truncates,
        .truncate_from = out->truncate_from,
    };
    if (out->hard_needed) {
        raft->needed_write = out->write.id;
    }
    if (out->append_from > 0) {
        out->write.first_index = out->append_from;
        out->write.entries = log_at(&raft->log, out->append_from);
        out->write.entry_count = (size_t)(log_last_index(&raft->log) - out->append_from + 1);
    }
    return &out->write;
}

static void finish_messages(struct raft *raft)
{
    struct outbox *out = &raft->out;
    const uint64_t writes[] = {[AFTER_HARD] = raft->needed_write, [AFTER_ALL] = raft->last_write};
    size_t kept = 0;

    for (size_t i = 0; i < out->message_count; i++) {
        struct raft_message *message = &out->messages[i];
        if (message->after_write && raft->storage_failed) {
            continue; /* the write that it waits for will never be stored */
        }
        if (message->after_write) {
            uint64_t write = writes[message->after_write];
            message->after_write = write > raft->stored_write ? write : 0;
        }
        if (message->type == RAFT_MSG_APPEND) {
            message->append.entries = log_at(&raft->log, message->append.prev_index + 1);
        }
        out->messages[kept++] = *message;
    }
    out->message_count = kept;
}

static void finish_apply(struct raft *raft)
{
    struct raft_update *update = &raft->out.update;
    raft_index through = raft->commit < raft->stored_index ? raft->commit : raft->stored_index;

    update->apply_count = 0;
    update->apply = NULL;
    update->apply_first = raft->handed + 1;
    if (through > raft->handed) {
        update->apply = log_at(&raft->log, raft->handed + 1);
        update->apply_count = (size_t)(through - raft->handed);
        raft->handed = through;
    }
}

static instant leader_deadline(const struct raft *raft)
{
    instant at = raft->peer_count > 1 ? raft->heartbeat_at : INSTANT_NEVER;

    at = instant_min(at, raft->jeopardy_at);
    at = instant_min(at, raft->announce_at);
    if (raft->term_start == RAFT_NOT_YET) {
        at = instant_min(at, raft->open_term_at);
    }
    if (raft->transfer.is_wanted) {
        at = instant_min(at, raft->transfer.deadline);
    }
    if (raft->drain.is_announced && !raft->drain.is_over) {
        at = instant_min(at, raft->drain.deadline);
    }
    return instant_min(at, raft->lease.held
                               ? raft->lease.end
                               : instant_add(raft->leader_since, raft->settings.heartbeat_timeout));
}

const struct raft_update *update_finish(struct raft *raft)
{
    struct outbox *out = &raft->out;
    struct raft_update *update = &out->update;

    RAFT_INVARIANT(raft->role == RAFT_LEADER || !raft->lease.held);
    RAFT_INVARIANT(raft->commit <= log_last_index(&raft->log));
    update->lease = raft->lease;
    update->write = finish_write(raft);
    finish_messages(raft);
    update->messages = out->messages;
    update->message_count = out->message_count;
    finish_apply(raft);
    update->install = raft->install ? &raft->snapshot : NULL;
    update->offer = raft->offer ? &raft->offered : NULL;
    update->reads = out->reads;
    update->read_count = out->read_count;
    update->events = out->events;
    update->event_count = out->event_count;
    update->deadline = instant_min(raft->store_at, raft->role == RAFT_LEADER ? leader_deadline(raft)
                                                                             : raft->election_at);
    update->heir = raft->role == RAFT_LEADER ? raft->heir : RAFT_NOBODY;
    return update;
}

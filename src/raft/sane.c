/* Messages that no honest peer of this group sends. An authenticated peer may still be of another
 * group, of a faulty build, or have lost its disk. Its message must neither end this process nor
 * leave an entry in the log that the next start refuses. So it is refused before it has any effect.
 */
#include "raft/sane.h"

#include "raft/configuration.h"
#include "raft/log.h"
#include "raft/membership.h"
#include "raft/mutants.h"
#include "raft/peer.h"
#include "raft/promise.h"
#include "raft/state.h"
#include "raft/update.h"

static bool is_place(raft_index index, raft_term term, raft_term through)
{
    return index < RAFT_SANE_MAX && term <= through && (index == 0) == (term == 0);
}

static bool is_configuration(const struct raft_entry *entry)
{
    struct raft_configuration configuration;
    bool is_sane;

    if (raft_configuration_decode(&configuration, entry->data, entry->bytes) != BATON_OK) {
        return false; /* or out of memory: as if the network had lost the message */
    }
    is_sane = configuration_is_sane(&configuration);
    raft_configuration_fini(&configuration);
    return is_sane;
}

bool sane_entry(const struct raft_entry *entry)
{
    return (unsigned)entry->kind <= RAFT_ENTRY_CONFIGURATION &&
           (entry->kind != RAFT_ENTRY_CONFIGURATION || is_configuration(entry));
}

/* Terms never fall within a log, and none is above its leader's. */
static bool is_append(const struct raft_message *message)
{
    raft_term before = message->append.prev_term;

    for (size_t i = 0; i < message->append.entry_count; i++) {
        const struct raft_entry *entry = &message->append.entries[i];
        if (entry->term < before || entry->term == 0 || entry->term > message->term ||
            !sane_entry(entry)) {
            return false;
        }
        before = entry->term;
    }
    return message->append.commit < RAFT_SANE_MAX &&
           is_place(message->append.prev_index, message->append.prev_term, message->term);
}

static bool is_snapshot(const struct raft_message *message)
{
    const struct raft_configuration *configuration = message->snapshot.configuration;

    return message->snapshot.index > 0 &&
           is_place(message->snapshot.index, message->snapshot.snapshot_term, message->term) &&
           message->snapshot.total_bytes <= RAFT_SNAPSHOT_BYTES_MAX &&
           message->snapshot.offset <= message->snapshot.total_bytes &&
           message->snapshot.bytes <= message->snapshot.total_bytes - message->snapshot.offset &&
           (configuration ? configuration_is_sane(configuration) : message->snapshot.offset > 0);
}

static bool is_heartbeat(const struct raft_message *message)
{
    raft_term heir_term = message->heartbeat.heir_term;

    return heir_term < RAFT_SANE_MAX &&
           (heir_term < message->term || heir_term - message->term <= RAFT_TERMS_AHEAD_MAX);
}

static bool is_term(const struct raft *raft, raft_term term)
{
    return term < RAFT_SANE_MAX &&
           (term < raft->hard.term || term - raft->hard.term <= RAFT_TERMS_AHEAD_MAX);
}

bool sane_message(const struct raft *raft, const struct raft_message *message)
{
    if (message->to != raft->id || message->from == raft->id || message->from == RAFT_NOBODY ||
        message->incarnation == 0 || !is_term(raft, message->term)) {
        return false;
    }
    switch (message->type) {
    case RAFT_MSG_PRE_VOTE:
    case RAFT_MSG_VOTE:
        return is_place(message->vote.last_index, message->vote.last_term, message->term);
    case RAFT_MSG_HEARTBEAT:
        return is_heartbeat(message);
    case RAFT_MSG_APPEND:
        return is_append(message);
    case RAFT_MSG_APPEND_REPLY:
        return (message->append_reply.index | message->append_reply.hint |
                message->append_reply.hint_term) < RAFT_SANE_MAX;
    case RAFT_MSG_SNAPSHOT:
        return is_snapshot(message);
    default:
        return true;
    }
}

/* ---- Contradiction --------------------------------------------------------------------------- */

/* Whether the entry is committed here with another term. */
static bool differs(const struct raft *raft, raft_index index, raft_term term)
{
    return index <= raft->commit && index >= raft->log.snapshot_index &&
           log_term_at(&raft->log, index) != term;
}

static bool append_differs(const struct raft *raft, const struct raft_message *message)
{
    raft_index first = message->append.prev_index + 1;
    bool found = differs(raft, message->append.prev_index, message->append.prev_term);

    for (size_t i = 0; i < message->append.entry_count && !found; i++) {
        found = differs(raft, first + i, message->append.entries[i].term);
    }
    return found;
}

static bool snapshot_differs(const struct raft *raft, const struct raft_message *message)
{
    raft_index index = message->snapshot.index;
    raft_term term = message->snapshot.snapshot_term;

    return differs(raft, index, term) ||
           (index > raft->commit && term < log_term_at(&raft->log, raft->commit));
}

bool sane_contradicts(struct raft *raft, const struct raft_message *message)
{
    bool is_other = message->from != raft->contradicted_by ||
                    message->incarnation != raft->contradicted_incarnation;
    bool found = (message->type == RAFT_MSG_APPEND && append_differs(raft, message)) ||
                 (message->type == RAFT_MSG_SNAPSHOT && snapshot_differs(raft, message));

    if (found && is_other) {
        struct raft_event *event = update_event(raft, RAFT_EV_CONTRADICTED);
        event->node = message->from;
        event->incarnation = message->incarnation;
        event->term = message->term;
        raft->contradicted_by = message->from;
        raft->contradicted_incarnation = message->incarnation;
    }
    return found;
}

/* ---- Members and others ---------------------------------------------------------------------- */

static bool is_in(const struct raft_configuration *configuration, raft_id id)
{
    return raft_configuration_find(configuration, id) != NULL;
}

/* Whether this node has heard no leader for as long as a leader may be silent. */
static bool is_without_leader(const struct raft *raft)
{
    return raft->role != RAFT_LEADER && !promise_is_active(raft) &&
           !instant_before(raft->now, raft->silent_until) &&
           !instant_before(raft->now, raft->leader_until);
}

static bool is_ahead(const struct raft *raft, const struct raft_message *request)
{
    raft_term last_term = log_last_term(&raft->log);

    return request->vote.last_term > last_term ||
           (request->vote.last_term == last_term &&
            request->vote.last_index > log_last_index(&raft->log));
}

/* The leader may have been removed from the group. A vote promises to follow its candidate, so this
 * node follows the candidate before the candidate's first message as leader. */
static bool is_followed(const struct raft *raft, raft_id id)
{
    return promise_is_active(raft) ? raft->promise.to == id : raft->leader == id;
}

bool sane_is_heard(const struct raft *raft, const struct raft_message *message)
{
    raft_id from = message->from;

    if (raft->configuration.count == 0 || peer_find(raft, from) || is_followed(raft, from) ||
        membership_before_holds(raft, from, is_in) || RAFT_MUTANT(STRANGERS_HEARD)) {
        return true;
    }
    switch (message->type) {
    case RAFT_MSG_PRE_VOTE:
    case RAFT_MSG_VOTE:
        return is_without_leader(raft) && is_ahead(raft, message);
    case RAFT_MSG_APPEND:
    case RAFT_MSG_SNAPSHOT:
        return is_without_leader(raft);
    default:
        return false;
    }
}

/* Appends: a follower takes what fits its log and says where it does not. Their replies: a leader
 * learns what the follower has stored. */
#include "raft/recv_append.h"

#include "raft/commit.h"
#include "raft/convert.h"
#include "raft/log.h"
#include "raft/membership.h"
#include "raft/mutants.h"
#include "raft/peer.h"
#include "raft/recv_heartbeat.h"
#include "raft/replicate.h"
#include "raft/sane.h"
#include "raft/state.h"
#include "raft/transfer.h"
#include "raft/update.h"

static void answer(struct raft *raft, const struct raft_message *append, bool rejected,
                   raft_index index, raft_index hint)
{
    struct raft_message *reply =
        update_message(raft, RAFT_MSG_APPEND_REPLY, append->from,
                       RAFT_MUTANT(ACK_BEFORE_STORE) ? AFTER_NOTHING : AFTER_ALL);
    if (reply) {
        reply->append_reply.rejected = rejected;
        reply->append_reply.index = index;
        reply->append_reply.hint = hint;
        reply->append_reply.is_awaited = append->append.is_awaited;
        reply->append_reply.hint_term = rejected ? log_term_at(&raft->log, hint) : 0;
    }
}

/* The logs differ at prev_index. They can agree at the latest where our term is not above the
 * leader's, so one reply skips a whole term of ours. */
static raft_index place_to_try(const struct raft *raft, const struct raft_message *message)
{
    raft_index hint = message->append.prev_index > 0 ? message->append.prev_index - 1 : 0;
    if (hint > log_last_index(&raft->log)) {
        hint = log_last_index(&raft->log);
    }
    while (hint > raft->commit && log_term_at(&raft->log, hint) > message->append.prev_term) {
        hint--;
    }
    return hint;
}

/* How many of the entries this log has already, in the same term. */
static size_t already_there(const struct raft *raft, const struct raft_message *message)
{
    raft_index index = message->append.prev_index + 1;
    size_t same = 0;

    while (same < message->append.entry_count &&
           (index + same <= raft->log.snapshot_index ||
            log_term_at(&raft->log, index + same) == message->append.entries[same].term) &&
           index + same <= log_last_index(&raft->log)) {
        same++;
    }
    return same;
}

static int truncate(struct raft *raft, raft_index from)
{
    RAFT_INVARIANT(from > raft->commit);
    if (raft->configuration_index >= from && !RAFT_MUTANT(MEMBERS_KEPT_AT_TRUNCATION) &&
        membership_revert(raft, from) != BATON_OK) {
        return BATON_ENOMEM;
    }
    log_truncate(&raft->log, from);
    raft->out.truncates = true;
    raft->out.truncate_from = from;
    if (raft->stored_index >= from && !RAFT_MUTANT(STORED_KEPT_AT_TRUNCATION)) {
        raft->stored_index = from - 1;
    }
    return BATON_OK;
}

/* A configuration is in force from the moment at which it is in the log. */
static int enter_configurations(struct raft *raft, raft_index from)
{
    for (raft_index i = log_last_index(&raft->log); i >= from; i--) {
        const struct raft_entry *entry = log_at(&raft->log, i);
        struct raft_configuration configuration = {0};
        int r;
        if (entry->kind != RAFT_ENTRY_CONFIGURATION) {
            continue;
        }
        r = raft_configuration_decode(&configuration, entry->data, entry->bytes);
        if (r == BATON_OK) {
            r = membership_enter(raft, &configuration, i);
        }
        raft_configuration_fini(&configuration);
        return r;
    }
    return BATON_OK;
}

static int take_entries(struct raft *raft, const struct raft_message *message)
{
    size_t same = already_there(raft, message);
    raft_index first = message->append.prev_index + 1 + same;
    size_t count = message->append.entry_count - same;
    int r = BATON_OK;

    if (count == 0) {
        return BATON_OK;
    }
    if (first <= log_last_index(&raft->log)) {
        r = truncate(raft, first);
    }
    if (r == BATON_OK) {
        r = log_append(&raft->log, message->append.entries + same, count, update_write_id(raft));
    }
    if (r == BATON_OK && (r = enter_configurations(raft, first)) != BATON_OK) {
        log_truncate(&raft->log, first);
    }
    if (r == BATON_OK) {
        raft->out.append_from = first;
    }
    return r;
}

static bool fits(const struct raft *raft, const struct raft_message *message)
{
    raft_index prev = message->append.prev_index;

    if (prev > log_last_index(&raft->log)) {
        return false;
    }
    return prev < raft->log.snapshot_index || RAFT_MUTANT(PREV_NOT_CHECKED) ||
           log_term_at(&raft->log, prev) == message->append.prev_term;
}

void recv_append(struct raft *raft, const struct raft_message *message)
{
    raft_index through = message->append.prev_index + message->append.entry_count;

    if ((message->term >= raft->hard.term && sane_contradicts(raft, message)) ||
        !recv_from_leader(raft, message)) {
        return;
    }
    if (!fits(raft, message)) {
        answer(raft, message, true, message->append.prev_index, place_to_try(raft, message));
        return;
    }
    if (take_entries(raft, message) != BATON_OK) {
        raft->out.out_of_memory = true; /* as if the network had lost the message */
        return;
    }
    commit_to(raft, message->append.commit < through || RAFT_MUTANT(COMMIT_UNCHECKED)
                        ? message->append.commit
                        : through);
    answer(raft, message, false, through, 0);
}

/* In PIPELINE a reply accounts for the appends whose entries it acknowledges, and for no others:
 * one that acknowledges nothing new (repeated, late, or a refusal) accounts for none. So `inflight`
 * is above 0 as long as entries are sent and not acknowledged, and they become overdue. */
static void take_acknowledged(struct peer *peer, raft_index index)
{
    peer->match = index;
    if (peer->state != REPLICATION_PIPELINE || peer->next <= index + 1) {
        peer->state = REPLICATION_PIPELINE;
        peer->next = index + 1;
        peer->inflight = 0;
    } else if (peer->inflight > 1) {
        peer->inflight--;
    }
}

void recv_append_reply(struct raft *raft, const struct raft_message *message)
{
    struct peer *peer = peer_find(raft, message->from);
    raft_index last = log_last_index(&raft->log);

    if (message->term > raft->hard.term) {
        convert_adopt_term(raft, message->term);
        return;
    }
    if (!peer || raft->role != RAFT_LEADER || message->term != raft->hard.term ||
        message->append_reply.index > last) {
        return;
    }
    if (RAFT_MUTANT(ANSWER_LOWERS_INFLIGHT) && peer->inflight > 0) {
        peer->inflight--;
    }
    if (message->append_reply.rejected) {
        raft_index next = message->append_reply.hint < last ? message->append_reply.hint : last;
        if (message->append_reply.index <= peer->match || peer->state == REPLICATION_SNAPSHOT) {
            return; /* an old reply */
        }
        while (next > peer->match && next > raft->log.snapshot_index &&
               log_term_at(&raft->log, next) > message->append_reply.hint_term) {
            next--;
        }
        peer->next = (next > peer->match ? next : peer->match) + 1;
        peer->state = REPLICATION_PROBE;
        peer->inflight = 0;
    } else if (message->append_reply.index > peer->match ||
               (message->append_reply.index == peer->match &&
                peer->state != REPLICATION_PIPELINE)) {
        take_acknowledged(peer, message->append_reply.index);
        commit_advance(raft);
        transfer_tick(raft);
        if (raft->role != RAFT_LEADER) {
            return;
        }
    }
    /* The configuration may have changed meanwhile: look the peer up again. */
    peer = peer_find(raft, message->from);
    if (peer) {
        replicate_to(raft, peer);
    }
}

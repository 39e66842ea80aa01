/* Reads that see every write committed before they were asked (Raft 6.4).
 *
 * By lease: a leader under its lease knows that nobody else committed anything. By quorum: a round
 * of heartbeats after the question shows that it still led then, whatever the clocks do. Either
 * waits for the first commit of the term: before that a leader does not know what is committed.
 */
#include "raft/internal.h"

static void answer(struct raft *raft, raft_id to, uint64_t context, raft_index index)
{
    struct raft_message *reply;

    if (to == RAFT_NOBODY) {
        update_read(raft, context, index);
        return;
    }
    reply = update_message(raft, RAFT_MSG_READ_REPLY, to, AFTER_NOTHING);
    if (reply) {
        reply->read.context = context;
        reply->read.index = index;
    }
}

static void ask_leader(struct raft *raft, uint64_t context)
{
    struct raft_message *message = NULL;

    if (raft->leader != RAFT_NOBODY && raft->leader != raft->id) {
        message = update_message(raft, RAFT_MSG_READ, raft->leader, AFTER_NOTHING);
    }
    if (message) {
        message->read.context = context;
    } else {
        update_read(raft, context, 0);
    }
}

void read_ask(struct raft *raft, uint64_t context, raft_id from, bool by_lease)
{
    struct pending_read *read;

    if (raft->role != RAFT_LEADER) {
        if (from == RAFT_NOBODY) {
            ask_leader(raft, context);
        } else {
            answer(raft, from, context, 0);
        }
        return;
    }
    if (by_lease && raft->lease.held &&
        (raft->commit >= raft->term_start || RAFT_MUTANT(READ_BEFORE_OWN_TERM))) {
        answer(raft, from, context, raft->commit);
        return;
    }
    if (raft->read_count == RAFT_READS_MAX || leader_open_term(raft) != BATON_OK) {
        answer(raft, from, context, 0);
        return;
    }
    read = &raft->reads[raft->read_count++];
    *read = (struct pending_read){
        .context = context,
        .from = from,
        .round = ++raft->read_round,
        .index = raft->commit > raft->term_start ? raft->commit : raft->term_start,
    };
    leader_heartbeat(raft);
    read_advance(raft);
}

static int64_t round_answered(const struct raft *raft, const struct peer *peer)
{
    return peer->id == raft->id ? INT64_MAX : (int64_t)peer->read_round;
}

void read_advance(struct raft *raft)
{
    int64_t reached;
    size_t kept = 0;

    if (raft->read_count == 0 || raft->role != RAFT_LEADER || raft->commit < raft->term_start) {
        return;
    }
    reached = quorum_value(raft, round_answered);
    for (size_t i = 0; i < raft->read_count; i++) {
        const struct pending_read read = raft->reads[i];
        if ((int64_t)read.round <= reached) {
            answer(raft, read.from, read.context, read.index);
        } else {
            raft->reads[kept++] = read;
        }
    }
    raft->read_count = kept;
}

void read_refuse_all(struct raft *raft)
{
    for (size_t i = 0; i < raft->read_count; i++) {
        answer(raft, raft->reads[i].from, raft->reads[i].context, 0);
    }
    raft->read_count = 0;
}

void read_reply(struct raft *raft, const struct raft_message *message)
{
    update_read(raft, message->read.context, message->read.index);
}

/* Reads that see every write committed before they were asked (Raft 6.4): those that wait for a
 * round of heartbeats. */
#include "raft/read.h"

#include "raft/mutants.h"
#include "raft/quorum.h"
#include "raft/state.h"
#include "raft/update.h"

void read_answer(struct raft *raft, raft_id to, uint64_t context, raft_index index)
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

void read_queue(struct raft *raft, raft_id from, uint64_t context)
{
    RAFT_INVARIANT(raft->read_count < RAFT_READS_MAX);
    raft->reads[raft->read_count++] = (struct pending_read){
        .context = context,
        .from = from,
        .round = ++raft->read_round,
        .index = raft->commit > raft->term_start ? raft->commit : raft->term_start,
    };
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
            read_answer(raft, read.from, read.context, read.index);
        } else {
            raft->reads[kept++] = read;
        }
    }
    raft->read_count = kept;
}

void read_refuse_all(struct raft *raft)
{
    for (size_t i = 0; i < raft->read_count; i++) {
        read_answer(raft, raft->reads[i].from, raft->reads[i].context, 0);
    }
    raft->read_count = 0;
}

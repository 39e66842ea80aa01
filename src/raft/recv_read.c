/* Questions for a read index.
 *
 * By lease: a leader under its lease knows that no other node has committed anything. By quorum: a
 * round of heartbeats after the question shows that it still leads, whatever the clocks do. Either
 * waits for the first commit of the term: before it a leader does not know what is committed.
 */
#include "raft/recv_read.h"

#include "raft/heartbeat.h"
#include "raft/leader.h"
#include "raft/mutants.h"
#include "raft/read.h"
#include "raft/state.h"
#include "raft/update.h"

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

void recv_read(struct raft *raft, uint64_t context, raft_id from, bool by_lease)
{
    if (raft->role != RAFT_LEADER) {
        if (from == RAFT_NOBODY) {
            ask_leader(raft, context);
        } else {
            read_answer(raft, from, context, 0);
        }
        return;
    }
    if (by_lease && raft->lease.held &&
        (raft->commit >= raft->term_start || RAFT_MUTANT(READ_BEFORE_OWN_TERM))) {
        read_answer(raft, from, context, raft->commit);
        return;
    }
    if (raft->read_count == RAFT_READS_MAX || leader_open_term(raft) != BATON_OK) {
        read_answer(raft, from, context, 0);
        return;
    }
    read_queue(raft, from, context);
    heartbeat_send(raft);
    read_advance(raft);
}

void recv_read_reply(struct raft *raft, const struct raft_message *message)
{
    update_read(raft, message->read.context, message->read.index);
}

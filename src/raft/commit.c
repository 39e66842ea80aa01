/* Which entries are committed. */
#include "raft/commit.h"

#include "raft/log.h"
#include "raft/mutants.h"
#include "raft/quorum.h"
#include "raft/read.h"
#include "raft/reconfigure.h"
#include "raft/state.h"

static int64_t stored_by(const struct raft *raft, const struct peer *peer)
{
    return (int64_t)(peer->id == raft->id ? raft->stored_index : peer->match);
}

void commit_to(struct raft *raft, raft_index index)
{
    if (index > log_last_index(&raft->log)) {
        index = log_last_index(&raft->log);
    }
    for (raft_index i = raft->commit + 1; i <= index && raft->role == RAFT_LEADER; i++) {
        const struct raft_entry *entry = log_at(&raft->log, i);
        size_t bytes = entry ? entry->bytes : 0;
        raft->uncommitted_bytes -=
            bytes < raft->uncommitted_bytes ? bytes : raft->uncommitted_bytes;
    }
    if (index > raft->commit) {
        raft->commit = index;
    }
    if (log_term_at(&raft->log, raft->commit) == raft->hard.term) {
        raft->lost_rounds = 0; /* a caretaker commits no entry of its own term */
    }
}

/* Only an entry of the own term is committed by counting; it commits all before it (Raft 5.4.2). An
 * older entry could be on a quorum and still be overwritten. */
void commit_advance(struct raft *raft)
{
    int64_t reached = quorum_value(raft, stored_by);

    if (raft->role != RAFT_LEADER || reached <= (int64_t)raft->commit) {
        return;
    }
    if (log_term_at(&raft->log, (raft_index)reached) == raft->hard.term ||
        RAFT_MUTANT(COMMIT_OF_OLD_TERM)) {
        commit_to(raft, (raft_index)reached);
        raft->announce_at = raft->now;
        reconfigure_advance(raft);
        read_advance(raft);
    }
}

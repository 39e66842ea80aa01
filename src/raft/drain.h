/* Draining: before a hand-over that the group wants, the programs under the lease are stopped. */
#ifndef RAFT_DRAIN_H
#define RAFT_DRAIN_H

#include "raft/raft.h"

/* Whether no program acts under the lease any more; announces the drain on the first call. */
bool drain_is_over(struct raft *raft, raft_id to);

#endif

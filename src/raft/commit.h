/* Which entries are committed. */
#ifndef RAFT_COMMIT_H
#define RAFT_COMMIT_H

#include "raft/raft.h"

/* Leader: commits what a quorum has stored, and goes on with what waited for that. */
void commit_advance(struct raft *raft);
/* Raises the commit index to `index`, or to the end of the log if that is lower. */
void commit_to(struct raft *raft, raft_index index);

#endif

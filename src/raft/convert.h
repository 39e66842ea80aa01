/* Every change of role. */
#ifndef RAFT_CONVERT_H
#define RAFT_CONVERT_H

#include "raft/raft.h"

void convert_to_follower(struct raft *raft, raft_id leader, uint64_t leader_incarnation);
void convert_to_pre_candidate(struct raft *raft);
void convert_to_candidate(struct raft *raft);
/* leader_begin() does the rest. */
void convert_to_leader(struct raft *raft);
/* Ends a leadership for that reason: the lease is void, and this node follows no leader. */
void convert_lose(struct raft *raft, enum raft_loss loss);
/* Enters a higher term, or the pledged one above it, as a follower without a leader. */
void convert_adopt_term(struct raft *raft, raft_term term);

#endif

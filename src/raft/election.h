/* Campaigns: pre-votes, votes, and what starts them. */
#ifndef RAFT_ELECTION_H
#define RAFT_ELECTION_H

#include "raft/raft.h"

void election_tick(struct raft *raft);
/* The leader is proved gone: the heir campaigns at once, any other node waits a round. */
void election_inherit(struct raft *raft, raft_id heir);
/* A candidate was refused for its shorter log: only this node may be able to bring others on. */
void election_note_shorter(struct raft *raft);
/* Wins the round if a quorum has granted it. */
void election_count_vote(struct raft *raft);

#endif

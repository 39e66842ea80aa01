/* How often the group changes its leader. */
#ifndef RAFT_ELECTION_RATE_H
#define RAFT_ELECTION_RATE_H

#include "raft/raft.h"

/* Counts the election that `winner` won in `term`, once; reports when there were too many. */
void election_rate_note(struct raft *raft, raft_term term, raft_id winner);
uint32_t election_rate_last_hour(const struct raft *raft);

#endif

/* Pledges: votes that are stored before they are requested. */
#ifndef RAFT_PLEDGE_H
#define RAFT_PLEDGE_H

#include "raft/raft.h"

/* The term of the next campaign without a pledge: above the own term and the pledged one. */
raft_term pledge_next_term(const struct raft *raft);
/* Whether the pledge lets this node vote for `candidate` in `term`. */
bool pledge_allows(const struct raft *raft, raft_id candidate, raft_term term);
/* Pledges what the heartbeat of the leader that this node follows asks for. */
void pledge_give(struct raft *raft, const struct raft_message *heartbeat);
/* Whether the stored pledge already records a vote for `candidate` in `term`. */
bool pledge_covers(const struct raft *raft, raft_id candidate, raft_term term);
/* Whether this node may campaign in the pledged term at once. */
bool pledge_lets_run(const struct raft *raft);

#endif

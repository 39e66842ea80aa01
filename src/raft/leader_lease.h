/* A leader's lease: granted by each voter, covered by a quorum. */
#ifndef RAFT_LEADER_LEASE_H
#define RAFT_LEADER_LEASE_H

#include "raft/raft.h"

/* Steps down if the lease has ended; the first thing in a step. */
void leader_lease_expire(struct raft *raft, instant last_step);
struct peer;

/* Counts what this voter granted to a request that was sent then; leader_lease_renew follows. */
void leader_lease_count(struct raft *raft, struct peer *peer, instant sent, span granted);
/* Extends the lease to the latest instant that a quorum covers. */
void leader_lease_renew(struct raft *raft);
/* Gives an end to the endless lease of a node that was a quorum alone, before others get a vote. */
void leader_lease_cap(struct raft *raft);
/* Whether a quorum of the configuration in force covers all of the lease that is published. */
bool leader_lease_is_covered(struct raft *raft);

#endif

/* Whether this node may campaign, and when. */
#ifndef RAFT_CANDIDACY_H
#define RAFT_CANDIDACY_H

#include "raft/raft.h"

/* A random number below `below`; 0 if that is 0. */
uint64_t candidacy_random(struct raft *raft, uint64_t below);
/* How long a round of votes lasts: random between the election timeouts, longer after rounds that
 * were lost. */
span candidacy_round_time(struct raft *raft);
/* When this node campaigns if it doubts the leader from `from` on: later for a lower priority. */
instant candidacy_after(struct raft *raft, instant from);
bool candidacy_may_run(const struct raft *raft);
/* Whether it campaigns, or leads, only to bring the others up to its longer log: it takes no lease.
 */
bool candidacy_is_caretaker(const struct raft *raft);

#endif

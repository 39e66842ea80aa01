/* The heir: the follower that campaigns first if this leader is proved gone. */
#ifndef RAFT_HEIR_H
#define RAFT_HEIR_H

#include "raft/state.h"

void heir_choose(struct raft *raft);
/* Whether the peer answers, is not cordoned and may lead after the change under way. */
bool heir_is_fit(const struct raft *raft, const struct peer *peer);

#endif

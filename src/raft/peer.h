/* What a node knows of each member. */
#ifndef RAFT_PEER_H
#define RAFT_PEER_H

#include "raft/state.h"

struct peer *peer_find(const struct raft *raft, raft_id id); /* NULL: no member */
const struct raft_member *peer_member(const struct raft *raft, const struct peer *peer);
/* Whether this leader has heard from it within the heartbeat timeout. */
bool peer_answers(const struct raft *raft, const struct peer *peer);
/* Whether it answers and has stored what was committed a heartbeat ago. */
bool peer_is_caught_up(const struct raft *raft, const struct peer *peer);
/* Makes raft->peers fit `configuration` and keeps what is known; BATON_ENOMEM changes nothing. */
int peers_rebuild(struct raft *raft, const struct raft_configuration *configuration);
/* Forgets all progress, at the start of a leadership. */
void peers_reset(struct raft *raft);

bool member_votes(const struct raft_member *member);
/* Whether the peer could campaign at once: it answers and is not proved dead, is not cordoned, and
 * votes already. */
bool peer_is_ready(const struct raft *raft, const struct peer *peer);
bool member_may_lead(const struct raft_member *member);

#endif

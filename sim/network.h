/* Messages in flight, and links that are cut. */
#ifndef SIM_NETWORK_H
#define SIM_NETWORK_H

#include "sim/world.h"

/* `message` is in the arena. */
void network_send(struct world *world, struct node *from, const struct raft_message *message);
/* A deep copy in the arena, as the first field of a struct outgoing. */
const struct raft_message *network_copy(struct world *world, const struct raft_message *message,
                                        instant made);
bool network_is_cut(const struct world *world, raft_id from, raft_id to);
void network_cut(struct world *world, const struct partition *partition, int64_t heal_at);
void network_heal(struct world *world, const struct partition *partition);
/* Tells both ends of each connection that the node can have. */
void network_connect(struct world *world, struct node *node);

#endif

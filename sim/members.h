/* The rules for the members. */
#ifndef SIM_MEMBERS_H
#define SIM_MEMBERS_H

#include "sim/world.h"

void members_begin(struct world *world, const struct raft_configuration *first);
void members_committed(struct world *world, const struct node *node, raft_index index);
void members_stepped(struct world *world, const struct node *node,
                     const struct raft_update *update);
void members_acquired(struct world *world, const struct node *node);
/* Whether the nodes that are up are a quorum, and one of them may lead, as each of them sees it. */
bool members_are_enough(const struct world *world);

#endif

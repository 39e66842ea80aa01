/* Draws from the seed what kind of world it is. */
#ifndef SIM_PROFILE_H
#define SIM_PROFILE_H

#include "sim/world.h"

void profile_draw(struct world *world);
void profile_members(struct world *world, struct raft_configuration *ret);
/* The settings of one life of one node. */
void profile_settings(struct world *world, struct raft_settings *ret);
void profile_random_member(struct world *world, raft_id id, struct raft_member *ret);

#endif

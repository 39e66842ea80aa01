/* A node's disk. */
#ifndef SIM_DISK_H
#define SIM_DISK_H

#include "sim/world.h"

void disk_write(struct world *world, struct node *node, const struct raft_write *write);
/* The oldest write under way ends. Returns whether there was one, and the input that reports it. */
bool disk_done(struct world *world, struct node *node, struct raft_input *ret);
void disk_crash(struct world *world, struct node *node);

#endif

/* One process around one core. */
#ifndef SIM_NODE_H
#define SIM_NODE_H

#include "sim/world.h"

void node_start(struct world *world, struct node *node);
void node_step(struct world *world, struct node *node, const struct raft_input *input);
void node_crash(struct world *world, struct node *node);
void node_event(struct world *world, const struct event *event);
/* The oldest write under way ends. */
void node_stored(struct world *world, struct node *node);
/* Connects to every node that it reaches, and greets them. */
void node_connect(struct world *world, struct node *node);

#endif

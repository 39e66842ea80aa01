/* Fences of silent hosts, in worlds that have them (`fence_after`). */
#ifndef SIM_FENCES_H
#define SIM_FENCES_H

#include "sim/world.h"

void fences_begin(struct world *world, struct node *node); /* a process has started */
void fences_end(struct node *node);                        /* the run is over */
/* A message of that node's process has arrived. */
void fences_heard(struct world *world, struct node *node, const struct raft_message *message);
void fences_crashed(struct world *world, struct node *node); /* its command ends with it */
void fences_look(struct world *world, struct node *node);
void fences_take(struct world *world, struct node *node, const struct fence_note *note);
void fences_ended(struct world *world, struct node *node); /* its command */
uint64_t fences_host(const struct world *world, raft_id id);

#endif

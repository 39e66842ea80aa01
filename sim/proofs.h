/* Proofs of a process's end: true, late, repeated, worthless. */
#ifndef SIM_PROOFS_H
#define SIM_PROOFS_H

#include "sim/world.h"

void proofs_of_death(struct world *world, const struct node *node);
void proofs_certify(struct world *world, const struct node *node, uint64_t incarnation);
void proofs_greet(struct world *world, const struct node *node);
void proofs_reset(struct world *world, const struct node *node);
void proofs_old(struct world *world);
void proofs_replay(struct world *world);

#endif

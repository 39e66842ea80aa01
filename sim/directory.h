/* Data directories that are copied, emptied or put back. */
#ifndef SIM_DIRECTORY_H
#define SIM_DIRECTORY_H

#include "sim/world.h"

void directory_copy(struct world *world, struct node *node);
void directory_replace(struct world *world, struct node *node);

#endif

/* Requests of users. */
#ifndef SIM_CLIENT_H
#define SIM_CLIENT_H

#include "sim/world.h"

void client_next(struct world *world);
void client_reconfigure(struct world *world, struct node *leader);
void client_transfer(struct world *world, struct node *leader);
void client_compact(struct world *world, struct node *node);

#endif

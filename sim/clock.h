/* Each node's own clock. */
#ifndef SIM_CLOCK_H
#define SIM_CLOCK_H

#include "sim/world.h"

void clock_start(struct world *world, struct node *node);
void clock_change_rate(struct world *world, struct node *node);
instant clock_local(const struct node *node, int64_t at);
/* The first true instant at which the node's clock shows `local`; INT64_MAX for never. */
int64_t clock_true(const struct node *node, instant local);

#endif

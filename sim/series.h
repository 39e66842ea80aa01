/* A series of crashes: winners, and the nodes that elected them. */
#ifndef SIM_SERIES_H
#define SIM_SERIES_H

#include "sim/world.h"

/* A node has been elected. */
void series_on_win(struct world *world);

#endif

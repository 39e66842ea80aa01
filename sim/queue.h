/* The queue of events, by true time. */
#ifndef SIM_QUEUE_H
#define SIM_QUEUE_H

#include "sim/world.h"

void queue_push(struct world *world, struct event event);
bool queue_pop(struct world *world, struct event *ret);

#endif

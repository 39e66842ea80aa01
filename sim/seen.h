/* Small hash tables of a run: terms, votes, entries. Raising world->checks.stamp empties them. */
#ifndef SIM_SEEN_H
#define SIM_SEEN_H

#include "sim/world.h"

/* The value of the key; 0: none. */
uint64_t seen_value(struct world *world, struct seen *table, uint64_t a, uint64_t b);
/* The same; if there was none, keeps `value` and returns it. */
uint64_t seen_first(struct world *world, struct seen *table, uint64_t a, uint64_t b,
                    uint64_t value);

#endif

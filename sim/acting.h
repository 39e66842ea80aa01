/* Which processes, and which programs beside them, act for a node at this instant. */
#ifndef SIM_ACTING_H
#define SIM_ACTING_H

#include "sim/world.h"

/* Whether is_leader() is true in this process. */
bool node_leads(const struct world *world, const struct node *node);
struct node *world_leader(struct world *world); /* NULL: none */
/* Whether the process leads, or a program of it acts. */
bool node_acts(const struct world *world, const struct node *node);
bool program_acts(const struct world *world, const struct node *node);
/* Whether the program of that life acts although the life has ended. */
bool program_outlives(const struct world *world, const struct node *node, uint64_t life);

#endif

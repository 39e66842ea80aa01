/* Which processes, and which programs beside them, act for a node at this instant. */
#include "sim/acting.h"

#include "sim/clock.h"

bool node_leads(const struct world *world, const struct node *node)
{
    return node->is_up && node->lease.held && clock_local(node, world->now).ns < node->lease.end.ns;
}

struct node *world_leader(struct world *world)
{
    for (raft_id id = 1; id <= world->node_count; id++) {
        if (node_leads(world, &world->nodes[id])) {
            return &world->nodes[id];
        }
    }
    return NULL;
}

bool program_acts(const struct world *world, const struct node *node)
{
    return node->program.runs && clock_local(node, world->now).ns < node->program.lease.end.ns;
}

bool node_acts(const struct world *world, const struct node *node)
{
    return node_leads(world, node) || program_acts(world, node);
}

bool program_outlives(const struct world *world, const struct node *node, uint64_t life)
{
    return program_acts(world, node) && node->program.life == life &&
           (!node->is_up || life < node->incarnation);
}

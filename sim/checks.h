/* The rules that must hold after every event. */
#ifndef SIM_CHECKS_H
#define SIM_CHECKS_H

#include "sim/world.h"

void checks_begin(struct world *world);
void checks_applied(struct world *world, struct node *node, const struct raft_update *update);
/* `before`: the node's state ahead of the step; `input`: of that step. */
void checks_stepped(struct world *world, struct node *node, const struct raft_update *update,
                    const struct raft_status *before, const struct raft_input *input);
void checks_read_asked(struct world *world, uint64_t context);
uint64_t checks_committed_chain(const struct world *world, raft_index index);

#endif

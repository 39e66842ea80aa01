/* The rules for votes, pledges and promises. */
#ifndef SIM_CHECKS_VOTES_H
#define SIM_CHECKS_VOTES_H

#include "sim/world.h"

void checks_written(struct world *world, struct node *node, const struct raft_write *write);
void checks_stored(struct world *world, struct node *node, const struct raft_hard_state *hard);
void checks_sent(struct world *world, struct node *node, const struct raft_message *message);
/* The vote counts from here on: the reply leaves, or the voter is the candidate and wins. */
void checks_voted(struct world *world, const struct node *voter, raft_term term, raft_id vote);

#endif

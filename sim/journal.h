/* A node's log, with a chain of hashes: two logs with one hash at an index are equal up to it. */
#ifndef SIM_JOURNAL_H
#define SIM_JOURNAL_H

#include "sim/world.h"

/* Whether the journal has the entry, or begins after it. */
bool journal_at(const struct journal *journal, raft_index index, raft_term *term, uint64_t *chain);
/* Applies a write to the journal. */
void journal_write(struct world *world, struct node *node, struct journal *journal,
                   const struct pending_write *pending);
uint64_t chain_of(uint64_t before, raft_term term, enum raft_entry_kind kind, const void *data,
                  size_t bytes);
void configuration_to_arena(struct world *world, struct raft_configuration *ret,
                            const struct raft_configuration *from);

#endif

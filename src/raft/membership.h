/* The configuration that is in force on this node: the last one in its log. */
#ifndef RAFT_MEMBERSHIP_H
#define RAFT_MEMBERSHIP_H

#include "raft/raft.h"

/* Puts `configuration` into force and empties it; BATON_ENOMEM changes nothing. */
int membership_enter(struct raft *raft, struct raft_configuration *configuration, raft_index index);
/* Ahead of a truncation: goes back to the last configuration before `from`. */
int membership_revert(struct raft *raft, raft_index from);
/* A copy of the configuration that was in force at `index`, which the log or its snapshot holds. */
int membership_at(const struct raft *raft, raft_index index, struct raft_configuration *ret,
                  raft_index *ret_index);
/* While the last configuration is not known to be committed: whether `holds` is true of `id` in the
 * one before it. Nodes that still use that one may need this node. */
bool membership_before_holds(const struct raft *raft, raft_id id,
                             bool (*holds)(const struct raft_configuration *, raft_id));

#endif

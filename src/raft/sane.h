/* What no honest peer sends, and which peers are listened to. */
#ifndef RAFT_SANE_H
#define RAFT_SANE_H

#include "raft/raft.h"

/* Whether an honest peer could have sent it, whatever this node knows. */
bool sane_message(const struct raft *raft, const struct raft_message *message);
/* Whether its kind is known and, if it is a configuration, whether that could be in force. */
bool sane_entry(const struct raft_entry *entry);
/* Whether it differs from what is committed here; reports that with RAFT_EV_CONTRADICTED. The peer
 * is of another group, or one of the two nodes has lost what it had stored. */
bool sane_contradicts(struct raft *raft, const struct raft_message *message);
/* Whether this node listens to the sender: docs/raft.md, "Which nodes are listened to". */
bool sane_is_heard(const struct raft *raft, const struct raft_message *message);

#endif

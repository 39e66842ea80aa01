/* The snapshot that a leader is sending to this node, chunk by chunk. */
#ifndef RAFT_INCOMING_H
#define RAFT_INCOMING_H

#include "raft/raft.h"

/* Begins anew with the message's first chunk; BATON_ENOMEM changes nothing. */
int incoming_begin(struct raft *raft, const struct raft_message *message);
/* Whether the message carries a chunk of the snapshot that is being received. */
bool incoming_is_of(const struct raft *raft, const struct raft_message *message);
/* Appends the chunk; BATON_ENOMEM changes nothing. */
int incoming_add(struct raft *raft, const struct raft_message *message);
/* The snapshot is complete: the update offers it to the driver. */
void incoming_offer(struct raft *raft);
void incoming_drop(struct raft *raft);

#endif

/* Questions for a read index, and their replies. */
#ifndef RAFT_RECV_READ_H
#define RAFT_RECV_READ_H

#include "raft/raft.h"

/* `from` RAFT_NOBODY: this node's own user asks. */
void recv_read(struct raft *raft, uint64_t context, raft_id from, bool by_lease);
void recv_read_reply(struct raft *raft, const struct raft_message *message);

#endif

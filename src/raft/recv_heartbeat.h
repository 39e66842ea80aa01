/* Heartbeats, their replies and resignations. */
#ifndef RAFT_RECV_HEARTBEAT_H
#define RAFT_RECV_HEARTBEAT_H

#include "raft/raft.h"

void recv_heartbeat(struct raft *raft, const struct raft_message *message);
void recv_heartbeat_reply(struct raft *raft, const struct raft_message *message);
void recv_resign(struct raft *raft, const struct raft_message *message);
/* Follows the sender of an append, a heartbeat or a snapshot if it leads; false: it does not. */
bool recv_from_leader(struct raft *raft, const struct raft_message *message);

#endif

/* Heartbeats to all peers. */
#ifndef RAFT_HEARTBEAT_H
#define RAFT_HEARTBEAT_H

#include "raft/raft.h"

void heartbeat_send(struct raft *raft);

#endif

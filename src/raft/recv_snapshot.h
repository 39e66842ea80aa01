/* Chunks of a snapshot and their replies. */
#ifndef RAFT_RECV_SNAPSHOT_H
#define RAFT_RECV_SNAPSHOT_H

#include "raft/raft.h"

void recv_snapshot(struct raft *raft, const struct raft_message *message);
void recv_snapshot_reply(struct raft *raft, const struct raft_message *message);
/* RAFT_IN_SNAPSHOT: the driver has tried to decode the offered state. */
int recv_snapshot_tried(struct raft *raft, const struct raft_input *input);

#endif

/* Reads that wait until they may be answered. */
#ifndef RAFT_READ_H
#define RAFT_READ_H

#include "raft/raft.h"

/* Answers one read; `to` RAFT_NOBODY is this node's own user, index 0 is a refusal. */
void read_answer(struct raft *raft, raft_id to, uint64_t context, raft_index index);
/* Queues a read for a new round of heartbeats; at most RAFT_READS_MAX may wait. */
void read_queue(struct raft *raft, raft_id from, uint64_t context);
/* Answers the reads whose round a quorum has replied to. */
void read_advance(struct raft *raft);
void read_refuse_all(struct raft *raft);

#endif

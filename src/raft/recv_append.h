/* Appends and their replies. */
#ifndef RAFT_RECV_APPEND_H
#define RAFT_RECV_APPEND_H

#include "raft/raft.h"

void recv_append(struct raft *raft, const struct raft_message *message);
void recv_append_reply(struct raft *raft, const struct raft_message *message);

#endif

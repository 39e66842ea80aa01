/* Requests for votes and pre-votes, and their replies. */
#ifndef RAFT_RECV_VOTE_H
#define RAFT_RECV_VOTE_H

#include "raft/raft.h"

void recv_pre_vote(struct raft *raft, const struct raft_message *message);
void recv_pre_vote_reply(struct raft *raft, const struct raft_message *message);
void recv_vote(struct raft *raft, const struct raft_message *message);
void recv_vote_reply(struct raft *raft, const struct raft_message *message);

#endif

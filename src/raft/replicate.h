/* The leader's log: appends to it, and sends each follower what it lacks. */
#ifndef RAFT_REPLICATE_H
#define RAFT_REPLICATE_H

#include "raft/state.h"

/* Appends to the own log; BATON_ENOMEM changes nothing. */
int replicate_append(struct raft *raft, const struct raft_entry *entry);
/* Sends the peer what it lacks, as far as its window allows. */
void replicate_to(struct raft *raft, struct peer *peer);
void replicate_to_all(struct raft *raft);
/* Sends the snapshot from its first chunk again: it is another one, or has another form. */
void replicate_snapshot_anew(struct raft *raft);
/* Sends the members that left with the last change the committed configuration without them. */
void replicate_farewell(struct raft *raft);
/* Replies to a sender that is no member and does not know it, with the entries that say so. */
void replicate_to_stranger(struct raft *raft, const struct raft_message *message);

#endif

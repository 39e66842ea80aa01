/* What a leader does when it is elected, and as time passes. */
#ifndef RAFT_LEADER_H
#define RAFT_LEADER_H

#include "raft/raft.h"

/* A candidate has won. */
void leader_begin(struct raft *raft);
/* Appends the first entry of the term, which commits all before it; BATON_ENOMEM: tried again. */
int leader_open_term(struct raft *raft);
void leader_tick(struct raft *raft);
/* The announced drain is over, or its time is. */
void leader_drained(struct raft *raft);

#endif

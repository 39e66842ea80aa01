/* Promises, silence and proofs: what keeps a second leader from being elected under a lease. */
#ifndef RAFT_PROMISE_H
#define RAFT_PROMISE_H

#include "raft/raft.h"

bool promise_is_active(const struct raft *raft);
/* Whether promises and silence let this node vote, or pre-vote, for `candidate` now. */
bool promise_allows_vote(const struct raft *raft, raft_id candidate);
/* What is left of the silence after the start. */
span promise_silence(const struct raft *raft);
bool promise_allows_candidacy(const struct raft *raft);
/* The earliest instant at which this node may campaign. */
instant promise_candidacy_at(const struct raft *raft);
/* Promises the sender of a heartbeat or of a request for votes; returns the granted time, which is
 * `asked` at most, and 0 if none is granted. */
span promise_give(struct raft *raft, const struct raft_message *message, span asked);
/* Counts the own lease among the promises of a node whose program may outlive it: after a restart
 * the node is silent for as long as that program may act. */
void promise_own_lease(struct raft *raft);
/* Whether an accepted proof says that the sender of this message leads no more. */
bool promise_is_disproved(const struct raft *raft, const struct raft_message *message);
/* Ends what the proof ends; returns whether it ended anything. */
bool promise_apply_proof(struct raft *raft, enum raft_proof_kind kind,
                         const struct raft_proof *proof);
/* Takes note of the sender's incarnation. A higher one proves that the earlier ones are dead,
 * unless a program may outlive them; *ret_is_leader_gone says that this ended the leader.
 * Returns false for a message of an earlier incarnation, which must be ignored. */
bool promise_observe_incarnation(struct raft *raft, const struct raft_message *message,
                                 bool *ret_is_leader_gone);

#endif

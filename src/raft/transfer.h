/* Handing leadership over. */
#ifndef RAFT_TRANSFER_H
#define RAFT_TRANSFER_H

#include "raft/raft.h"

/* `to` RAFT_NOBODY: the best placed. Errors: RAFT_IN_TRANSFER in raft.h. */
int transfer_begin(struct raft *raft, raft_id to, instant deadline, bool or_stay);
/* Hands over if the heir has everything; at the deadline resigns or stays. */
void transfer_tick(struct raft *raft);
/* Voids the lease, then sends every peer the resignation; `to` may be RAFT_NOBODY. */
void transfer_now(struct raft *raft, raft_id to, enum raft_loss loss);

#endif

/* Changes of members. */
#ifndef RAFT_RECONFIGURE_H
#define RAFT_RECONFIGURE_H

#include "raft/raft.h"

int reconfigure_begin(struct raft *raft, const struct raft_configuration *wanted, bool is_forced);
/* Goes on with a committed change: leaves a joint configuration, steps down if this leader was
 * removed. */
void reconfigure_advance(struct raft *raft);

#endif

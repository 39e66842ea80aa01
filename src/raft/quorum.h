/* Quorums: more than half of the weight, in both halves of a joint configuration. */
#ifndef RAFT_QUORUM_H
#define RAFT_QUORUM_H

#include "raft/state.h"

struct quorum_item {
    int64_t value;
    uint32_t weight;
};

/* Whether the peers for which `holds` is true are a quorum. */
bool quorum_holds(const struct raft *raft, bool (*holds)(const struct raft *, const struct peer *));
/* The largest value that a quorum reaches. */
int64_t quorum_value(struct raft *raft, int64_t (*value)(const struct raft *, const struct peer *));
/* Whether this node alone is a quorum. */
bool quorum_is_self(const struct raft *raft);

#endif

/* Quorums: more than half of the weight, in both halves of a joint configuration. */
#include "raft/quorum.h"

#include "raft/mutants.h"
#include "raft/state.h"

#include <stdlib.h>

enum half { HALF_NEW, HALF_OLD };

static uint32_t weight_in(const struct raft_member *member, enum half half)
{
    uint32_t weight = half == HALF_OLD     ? member->old_weight
                      : member->is_leaving ? 0
                                           : member->weight;
    if (RAFT_MUTANT(WEIGHTS_AS_HEADS)) {
        return weight > 0 ? 1 : 0;
    }
    return weight;
}

static uint64_t total_of(const struct raft_configuration *configuration, enum half half)
{
    uint64_t total = 0;
    for (size_t i = 0; i < configuration->count; i++) {
        total += weight_in(&configuration->members[i], half);
    }
    return total;
}

static bool is_quorum(uint64_t weight, uint64_t total)
{
    if (RAFT_MUTANT(QUORUM_OF_HALF)) {
        return total > 0 && 2 * weight >= total;
    }
    return 2 * weight > total;
}

static bool needs_old_half(const struct raft_configuration *configuration)
{
    return configuration->is_joint && !RAFT_MUTANT(JOINT_NEW_HALF_ONLY);
}

static bool holds_in(const struct raft *raft, enum half half,
                     bool (*holds)(const struct raft *, const struct peer *))
{
    uint64_t weight = 0;
    for (size_t i = 0; i < raft->peer_count; i++) {
        if (holds(raft, &raft->peers[i])) {
            weight += weight_in(&raft->configuration.members[i], half);
        }
    }
    return is_quorum(weight, total_of(&raft->configuration, half));
}

bool quorum_holds(const struct raft *raft, bool (*holds)(const struct raft *, const struct peer *))
{
    return holds_in(raft, HALF_NEW, holds) &&
           (!needs_old_half(&raft->configuration) || holds_in(raft, HALF_OLD, holds));
}

static int by_value_descending(const void *a, const void *b)
{
    const struct quorum_item *x = a;
    const struct quorum_item *y = b;
    return (x->value < y->value) - (x->value > y->value);
}

static int64_t value_in(struct raft *raft, enum half half,
                        int64_t (*value)(const struct raft *, const struct peer *))
{
    uint64_t total = total_of(&raft->configuration, half);
    uint64_t weight = 0;

    for (size_t i = 0; i < raft->peer_count; i++) {
        raft->scratch[i].value = value(raft, &raft->peers[i]);
        raft->scratch[i].weight = weight_in(&raft->configuration.members[i], half);
    }
    qsort(raft->scratch, raft->peer_count, sizeof(*raft->scratch), by_value_descending);
    for (size_t i = 0; i < raft->peer_count; i++) {
        weight += raft->scratch[i].weight;
        if (is_quorum(weight, total)) {
            return raft->scratch[i].value;
        }
    }
    return INT64_MIN;
}

int64_t quorum_value(struct raft *raft, int64_t (*value)(const struct raft *, const struct peer *))
{
    int64_t reached = value_in(raft, HALF_NEW, value);
    if (needs_old_half(&raft->configuration)) {
        int64_t old = value_in(raft, HALF_OLD, value);
        reached = old < reached ? old : reached;
    }
    return reached;
}

static bool is_self(const struct raft *raft, const struct peer *peer)
{
    return peer->id == raft->id;
}

bool quorum_is_self(const struct raft *raft)
{
    return quorum_holds(raft, is_self);
}

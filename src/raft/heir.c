/* The heir. The leader names it in each heartbeat, so that every follower knows it when the proof
 * of the leader's death arrives. */
#include "raft/heir.h"

#include "raft/peer.h"
#include "raft/state.h"

bool heir_is_fit(const struct raft *raft, const struct peer *peer)
{
    return peer->id != raft->id && peer_is_ready(raft, peer) &&
           member_may_lead(peer_member(raft, peer)) && !peer_member(raft, peer)->is_leaving;
}

/* Better placed: has all that is committed, then has the higher priority, then is clearly nearer.
 * The heir must not change with every measurement, or with every entry in flight. */
static bool is_better(const struct raft *raft, const struct peer *a, const struct peer *b)
{
    int32_t priority_a = peer_member(raft, a)->priority;
    int32_t priority_b = peer_member(raft, b)->priority;
    raft_index has_a = a->match < raft->commit ? a->match : raft->commit;
    raft_index has_b = b->match < raft->commit ? b->match : raft->commit;

    if (has_a != has_b) {
        return has_a > has_b;
    }
    if (priority_a != priority_b) {
        return priority_a > priority_b;
    }
    return 2 * a->round_trip.ns < b->round_trip.ns &&
           b->round_trip.ns - a->round_trip.ns > SPAN_MS(1).ns;
}

/* Each heir gets a term of its own, and so does a new incarnation of the same heir: a pledge is
 * never taken back, only replaced by one to a later term. */
static void name_heir(struct raft *raft, const struct peer *heir)
{
    raft->heir = heir->id;
    raft->heir_incarnation = heir->incarnation;
    raft->heir_term = (raft->heir_term > 0 ? raft->heir_term : raft->hard.term) + 1;
    raft->heartbeat_at = raft->now; /* announce it at once */
}

void heir_choose(struct raft *raft)
{
    struct peer *best = peer_find(raft, raft->heir);

    if (best && !heir_is_fit(raft, best)) {
        best = NULL;
    }
    for (size_t i = 0; i < raft->peer_count; i++) {
        struct peer *peer = &raft->peers[i];
        if (heir_is_fit(raft, peer) && (!best || is_better(raft, peer, best))) {
            best = peer;
        }
    }
    if (!best) {
        raft->heir = RAFT_NOBODY;
    } else if (raft->heir != best->id || raft->heir_incarnation != best->incarnation) {
        name_heir(raft, best);
    }
}

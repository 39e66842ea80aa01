/* Pledges: votes that are on disk before anybody asks for them.
 *
 *   heartbeat of the leader of term T: "should I go, n2 runs in term t"       (t > T)
 *        │
 *        ▼
 *   stored, in good time: no vote below t, and in t none but for n2           the pledge
 *        │
 *        ▼
 *   proof that this leader leads no more, and n2 asks: the vote leaves at once
 *
 * A vote has to be stored before it is given so that a voter that crashes cannot give it twice. The
 * pledge sees to that already: whatever such a voter has forgotten, it will not vote otherwise in
 * t, nor at all below. What it may also have forgotten is that it had left term T. But the leader
 * of T is proved gone, so that nobody counts what this voter could still say in T; and the terms
 * between it does not enter. docs/raft.md has the argument at length, R8.
 *
 * The heir itself may run in t once only, in the life in which it pledged: it could have won t
 * before a crash. Whoever is not the heir, or has no proof, runs above t, by the usual way.
 */
#include "raft/pledge.h"

#include "raft/mutants.h"
#include "raft/peer.h"
#include "raft/promise.h"
#include "raft/state.h"
#include "raft/update.h"

raft_term pledge_next_term(const struct raft *raft)
{
    raft_term pledged = raft->hard.pledged_term;

    if (RAFT_MUTANT(PLEDGE_RUN_TWICE) && pledged > raft->hard.term &&
        raft->hard.pledged_to == raft->id) {
        return pledged;
    }
    return (pledged > raft->hard.term ? pledged : raft->hard.term) + 1;
}

bool pledge_allows(const struct raft *raft, raft_id candidate, raft_term term)
{
    return term > raft->hard.pledged_term || raft->hard.term >= raft->hard.pledged_term ||
           (term == raft->hard.pledged_term && candidate == raft->hard.pledged_to) ||
           RAFT_MUTANT(PLEDGE_IGNORED);
}

void pledge_give(struct raft *raft, const struct raft_message *heartbeat)
{
    raft_term term = heartbeat->heartbeat.heir_term;
    raft_id heir = heartbeat->heartbeat.heir;

    if (heir == RAFT_NOBODY || term <= heartbeat->term ||
        (term < raft->hard.pledged_term && !RAFT_MUTANT(PLEDGE_TAKEN_BACK)) ||
        (term == raft->hard.pledged_term && heir != raft->hard.pledged_to)) {
        return; /* none that would be to anybody's use, or one that a later one has replaced */
    }
    if (term > raft->hard.pledged_term || RAFT_MUTANT(PLEDGE_TAKEN_BACK)) {
        raft->hard.pledged_term = term;
        raft->hard.pledged_to = heir;
        raft->pledge.write = update_write_id(raft);
        raft->pledge.is_of_this_life = true;
        update_hard_changed(raft, HARD_SOON);
        if (heir == raft->id) {
            promise_own_lease(raft); /* it runs without storing anything */
        }
    }
    raft->pledge.leader = heartbeat->from;
    raft->pledge.incarnation = heartbeat->incarnation;
    raft->pledge.term = heartbeat->term;
}

static bool is_leader_gone(const struct raft *raft)
{
    const struct peer *peer = peer_find(raft, raft->pledge.leader);

    if (RAFT_MUTANT(PLEDGE_WITHOUT_PROOF)) {
        return true;
    }
    return peer && (raft->pledge.incarnation <= peer->dead_through ||
                    (raft->pledge.incarnation == peer->resigned_incarnation &&
                     raft->pledge.term <= peer->resigned_through));
}

bool pledge_covers(const struct raft *raft, raft_id candidate, raft_term term)
{
    bool is_stored = raft->stored_write >= raft->pledge.write || RAFT_MUTANT(PLEDGE_NOT_STORED);

    return term == raft->hard.pledged_term && candidate == raft->hard.pledged_to &&
           raft->hard.term < term && is_stored && raft->pledge.leader != RAFT_NOBODY &&
           raft->pledge.term == raft->hard.term && is_leader_gone(raft);
}

bool pledge_lets_run(const struct raft *raft)
{
    return (raft->pledge.is_of_this_life || RAFT_MUTANT(PLEDGE_RUN_TWICE)) &&
           pledge_covers(raft, raft->id, raft->hard.pledged_term);
}

/* Pledges: votes that are stored before they are requested.
 *
 *   heartbeat of the leader of term T: "if I am gone, n2 campaigns in term t"     (t > T)
 *        │
 *        ▼
 *   stored: this node votes in no term below t, and in t only for n2              the pledge
 *        │
 *        ▼
 *   proof that this leader leads no more, and n2 asks: the vote leaves at once
 *
 * A vote is stored before it leaves so that a voter that crashes cannot give it twice. The stored
 * pledge has the same effect: after a crash the voter votes in t for no other node, and in no term
 * below t. The voter may also have forgotten that it had left term T. But the leader of T is proved
 * gone, so no leader counts this voter's replies in T, and it enters no term between T and t.
 * docs/raft.md, R8, has the whole argument.
 *
 * The heir itself may campaign in t only in the incarnation in which it pledged: it could have won
 * t before a crash. A node that is not the heir, or has no proof, campaigns above t as usual.
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
        return; /* of no use, or an older one than the stored pledge */
    }
    if (term > raft->hard.pledged_term || RAFT_MUTANT(PLEDGE_TAKEN_BACK)) {
        raft->hard.pledged_term = term;
        raft->hard.pledged_to = heir;
        raft->pledge.write = update_write_id(raft);
        raft->pledge.is_of_this_life = true;
        update_hard_changed(raft, HARD_SOON);
        if (heir == raft->id) {
            promise_own_lease(raft); /* it will campaign without storing anything */
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

/* The status of a node and of its peers. */
#include "raft/election_rate.h"
#include "raft/log.h"
#include "raft/peer.h"
#include "raft/promise.h"
#include "raft/state.h"

void raft_get_status(const struct raft *raft, struct raft_status *ret)
{
    bool promised = promise_is_active(raft);

    *ret = (struct raft_status){
        .id = raft->id,
        .role = raft->role,
        .term = raft->hard.term,
        .vote = raft->hard.vote,
        .leader = raft->leader,
        .leader_incarnation = raft->leader_incarnation,
        .lease = raft->lease,
        .promised_to = promised ? raft->promise.to : RAFT_NOBODY,
        .promised_incarnation = promised ? raft->promise.incarnation : 0,
        .promised_until = promised ? raft->promise.until : INSTANT_PAST,
        .silent_until = raft->silent_until,
        .first_index = raft->log.snapshot_index + 1,
        .last_index = log_last_index(&raft->log),
        .stored_index = raft->stored_index,
        .commit_index = raft->commit,
        .applied_index = raft->applied,
        .configuration_index = raft->configuration_index,
        .heir = raft->role == RAFT_LEADER ? raft->heir : raft->heir_named,
        .pledged_term = raft->hard.pledged_term,
        .pledged_to = raft->hard.pledged_to,
        .eligible = raft->eligible,
        .is_changing = raft->configuration.is_joint || raft->configuration_index > raft->commit,
        .storage_failed = raft->storage_failed,
        .elections_last_hour = election_rate_last_hour(raft),
    };
}

bool raft_get_progress(const struct raft *raft, raft_id id, struct raft_progress *ret)
{
    const struct peer *peer = peer_find(raft, id);

    if (!peer || raft->role != RAFT_LEADER) {
        return false;
    }
    *ret = (struct raft_progress){.match_index = peer->match,
                                  .is_active = peer->is_active,
                                  .heard = peer->heard,
                                  .round_trip = peer->round_trip,
                                  .is_caught_up = peer_is_caught_up(raft, peer),
                                  .may_lead = peer->is_active && peer->may_lead};
    if (instant_before(raft->now, peer->silent_until)) {
        ret->silence = instant_since(peer->silent_until, raft->now);
    }
    if (id == raft->id) {
        *ret = (struct raft_progress){.match_index = raft->stored_index,
                                      .is_active = true,
                                      .heard = raft->now,
                                      .is_caught_up = true,
                                      .may_lead = raft->eligible};
    }
    return true;
}

const struct raft_configuration *raft_get_configuration(const struct raft *raft)
{
    return &raft->configuration;
}

/* What a node knows of each member: one struct peer for each, in the order of the configuration. */
#include "raft/peer.h"

#include "raft/log.h"
#include "raft/mutants.h"
#include "raft/quorum.h"
#include "raft/state.h"

#include <stdlib.h>

struct peer *peer_find(const struct raft *raft, raft_id id)
{
    size_t low = 0;
    size_t high = raft->peer_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (raft->peers[middle].id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < raft->peer_count && raft->peers[low].id == id ? &raft->peers[low] : NULL;
}

const struct raft_member *peer_member(const struct raft *raft, const struct peer *peer)
{
    return &raft->configuration.members[peer - raft->peers];
}

bool member_votes(const struct raft_member *member)
{
    return member->weight > 0 || member->old_weight > 0;
}

bool member_may_lead(const struct raft_member *member)
{
    return (member->kind == RAFT_VOTER || RAFT_MUTANT(WITNESS_LEADS)) && member_votes(member);
}

bool peer_is_ready(const struct raft *raft, const struct peer *peer)
{
    bool is_dead = peer->dead_through > 0 && peer->incarnation <= peer->dead_through;

    return peer->is_active && !is_dead && peer->may_lead &&
           !instant_before(raft->now, peer->silent_until);
}

bool peer_answers(const struct raft *raft, const struct peer *peer)
{
    return peer->id == raft->id || (peer->is_active && instant_since(raft->now, peer->heard).ns <=
                                                           raft->settings.heartbeat_timeout.ns);
}

bool peer_is_caught_up(const struct raft *raft, const struct peer *peer)
{
    return peer->id == raft->id || (peer_answers(raft, peer) && peer->match >= raft->commit_before);
}

static void peer_reset(const struct raft *raft, struct peer *peer)
{
    peer->state = REPLICATION_PROBE;
    peer->match = 0;
    peer->next = log_last_index(&raft->log) + 1;
    peer->inflight = 0;
    peer->sent_at = INSTANT_PAST;
    peer->announced = 0;
    peer->awaited = 0;
    peer->awaited_by_all = 0;
    peer->announced_at = INSTANT_PAST;
    peer->snapshot_offset = 0;
    peer->is_active = false;
    peer->may_lead = false;
    peer->silent_until = INSTANT_PAST;
    peer->active_since = INSTANT_PAST;
    peer->heard = INSTANT_PAST;
    peer->granted_until = INSTANT_PAST;
    peer->read_round = 0;
}

void peers_reset(struct raft *raft)
{
    for (size_t i = 0; i < raft->peer_count; i++) {
        peer_reset(raft, &raft->peers[i]);
    }
}

int peers_rebuild(struct raft *raft, const struct raft_configuration *configuration)
{
    size_t count = configuration->count;
    struct peer *peers = calloc(count + 1, sizeof(*peers));
    struct quorum_item *scratch = calloc(count + 1, sizeof(*scratch));

    if (!peers || !scratch) {
        free(peers);
        free(scratch);
        return BATON_ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        const struct peer *known = peer_find(raft, configuration->members[i].id);
        if (known) {
            peers[i] = *known;
        } else {
            peers[i].id = configuration->members[i].id;
            peer_reset(raft, &peers[i]);
        }
    }
    free(raft->peers);
    free(raft->scratch);
    raft->peers = peers;
    raft->scratch = scratch;
    raft->peer_count = count;
    return BATON_OK;
}

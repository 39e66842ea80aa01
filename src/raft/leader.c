/* What a leader does when it is elected and as time passes: it opens its term, sends heartbeats,
 * announces commits, and goes on with transfers and changes of members. */
#include "raft/leader.h"

#include "raft/convert.h"
#include "raft/drain.h"
#include "raft/heartbeat.h"
#include "raft/heir.h"
#include "raft/leader_lease.h"
#include "raft/log.h"
#include "raft/peer.h"
#include "raft/reconfigure.h"
#include "raft/replicate.h"
#include "raft/state.h"
#include "raft/transfer.h"
#include "raft/update.h"

/* What a voter promised with its vote. It may have granted more than this node asks for. */
static void count_promises(struct raft *raft)
{
    for (size_t i = 0; i < raft->peer_count; i++) {
        struct peer *peer = &raft->peers[i];
        if (peer->vote_promise.ns > 0) {
            bool is_more = peer->vote_promise.ns > raft->settings.lease.ns;
            leader_lease_count(raft, peer, raft->campaigned_at,
                               is_more ? raft->settings.lease : peer->vote_promise);
        }
    }
}

void leader_begin(struct raft *raft)
{
    convert_to_leader(raft);
    count_promises(raft);
    leader_lease_renew(raft);
    heartbeat_send(raft);
    replicate_to_all(raft);
}

/* The step that wins the election does not append this entry, nor does the one that has the first
 * lease: storing it would come between the votes and the moment at which this leader may act. */
int leader_open_term(struct raft *raft)
{
    struct raft_entry noop = {.term = raft->hard.term, .kind = RAFT_ENTRY_NOOP};

    if (raft->term_start != RAFT_NOT_YET) {
        return BATON_OK;
    }
    if (replicate_append(raft, &noop) != BATON_OK) {
        raft->out.out_of_memory = true;
        return BATON_ENOMEM;
    }
    raft->term_start = log_last_index(&raft->log);
    replicate_to_all(raft);
    return BATON_OK;
}

static void note_silence(struct raft *raft, struct peer *peer)
{
    if (peer->is_active &&
        instant_since(raft->now, peer->heard).ns > raft->settings.heartbeat_timeout.ns) {
        struct raft_event *event = update_event(raft, RAFT_EV_PEER);
        peer->is_active = false;
        event->node = peer->id;
        event->is_active = false;
    }
}

/* A member of higher priority that has been active for long enough gets leadership, by transfer and
 * never by an election against a leader that works. */
static void prefer(struct raft *raft)
{
    const struct raft_member *self = raft_configuration_find(&raft->configuration, raft->id);

    if (raft->role != RAFT_LEADER || raft->transfer.is_wanted || raft->drain.is_announced ||
        !raft->lease.held || !self) {
        return;
    }
    for (size_t i = 0; i < raft->peer_count; i++) {
        struct peer *peer = &raft->peers[i];
        if (heir_is_fit(raft, peer) && peer_member(raft, peer)->priority > self->priority &&
            instant_since(raft->now, peer->active_since).ns >= raft->settings.preferred_stable.ns &&
            peer->match == log_last_index(&raft->log)) {
            peer->active_since = raft->now; /* after a failed try it waits as long again */
            (void)drain_is_over(raft, peer->id);
            return;
        }
    }
}

static void report_jeopardy(struct raft *raft)
{
    if (raft->lease.held && !instant_before(raft->now, raft->jeopardy_at)) {
        update_event(raft, RAFT_EV_JEOPARDY)->left = instant_since(raft->lease.end, raft->now);
        raft->jeopardy_at = INSTANT_NEVER;
    }
}

static void announce_commits(struct raft *raft)
{
    if (raft->role == RAFT_LEADER && !instant_before(raft->now, raft->announce_at)) {
        raft->announce_at = INSTANT_NEVER;
        replicate_to_all(raft);
    }
}

void leader_drained(struct raft *raft)
{
    raft_id to = raft->drain.to;

    if (raft->role != RAFT_LEADER || !raft->drain.is_announced || raft->drain.is_over) {
        return;
    }
    if (to == RAFT_NOBODY) {
        raft->drain.is_over = true;
        reconfigure_advance(raft);
        return;
    }
    raft->drain = (struct drain){0};
    if (transfer_begin(raft, to, instant_add(raft->now, raft->settings.election_timeout_max),
                       true) == BATON_EINVAL) { /* it is no member any more */
        update_event(raft, RAFT_EV_TRANSFER_FAILED)->node = to;
    }
}

static void drain_tick(struct raft *raft)
{
    if (raft->drain.is_announced && !instant_before(raft->now, raft->drain.deadline)) {
        leader_drained(raft);
    }
}

static bool is_term_due(const struct raft *raft)
{
    return raft->term_start == RAFT_NOT_YET && !instant_before(raft->now, raft->open_term_at);
}

void leader_tick(struct raft *raft)
{
    if (is_term_due(raft) && raft->is_own_tick) {
        (void)leader_open_term(raft);
    }
    report_jeopardy(raft);
    drain_tick(raft);
    transfer_tick(raft);
    announce_commits(raft);
    if (raft->role != RAFT_LEADER || instant_before(raft->now, raft->heartbeat_at)) {
        return;
    }
    for (size_t i = 0; i < raft->peer_count; i++) {
        note_silence(raft, &raft->peers[i]);
    }
    heir_choose(raft);
    reconfigure_advance(raft); /* memory may have been short when it was due */
    prefer(raft);
    if (raft->role == RAFT_LEADER) {
        heartbeat_send(raft);
        replicate_to_all(raft);
    }
}

/* Heartbeats, their replies, and resignations. */
#include "raft/recv_heartbeat.h"

#include "raft/candidacy.h"
#include "raft/commit.h"
#include "raft/convert.h"
#include "raft/election.h"
#include "raft/heir.h"
#include "raft/leader_lease.h"
#include "raft/mutants.h"
#include "raft/peer.h"
#include "raft/pledge.h"
#include "raft/promise.h"
#include "raft/read.h"
#include "raft/reconfigure.h"
#include "raft/state.h"
#include "raft/update.h"

static void send_own_term(struct raft *raft, const struct raft_message *message)
{
    /* It must learn our term: this node could never follow it in a lower one. */
    struct raft_message *reply =
        update_message(raft, RAFT_MSG_HEARTBEAT_REPLY, message->from, AFTER_HARD);
    if (reply) {
        reply->heartbeat_reply.sent = INSTANT_PAST;
    }
}

bool recv_from_leader(struct raft *raft, const struct raft_message *message)
{
    if (promise_is_disproved(raft, message)) {
        return false;
    }
    if (message->term > raft->hard.term) {
        convert_adopt_term(raft, message->term);
    }
    if (message->term < raft->hard.term) { /* or below the pledged term */
        send_own_term(raft, message);
        return false;
    }
    if (raft->role == RAFT_LEADER) {
        return false; /* two leaders of one term: this core elects none such, and follows none */
    }
    convert_to_follower(raft, message->from, message->incarnation);
    raft->leader_until = instant_add(raft->now, raft->settings.heartbeat_timeout);
    raft->election_at = candidacy_after(raft, raft->leader_until);
    return true;
}

void recv_heartbeat(struct raft *raft, const struct raft_message *message)
{
    struct raft_message *reply;
    span granted;

    if (!recv_from_leader(raft, message)) {
        return;
    }
    raft->heir_named = message->heartbeat.heir;
    commit_to(raft, message->heartbeat.commit);
    granted = promise_give(raft, message, message->heartbeat.lease);
    pledge_give(raft, message);
    reply = update_message(raft, RAFT_MSG_HEARTBEAT_REPLY, message->from, AFTER_HARD);
    if (reply) {
        reply->heartbeat_reply.sent = message->heartbeat.sent;
        reply->heartbeat_reply.granted = granted;
        reply->heartbeat_reply.read_round = message->heartbeat.read_round;
        reply->heartbeat_reply.may_lead = raft->eligible;
        reply->heartbeat_reply.silence = promise_silence(raft);
    }
}

static void measure(struct raft *raft, struct peer *peer, instant sent)
{
    int64_t trip = instant_since(raft->now, sent).ns;
    peer->round_trip.ns = peer->round_trip.ns > 0 ? (7 * peer->round_trip.ns + trip) / 8 : trip;
}

static void hear(struct raft *raft, struct peer *peer)
{
    peer->heard = raft->now;
    if (!peer->is_active) {
        struct raft_event *event = update_event(raft, RAFT_EV_PEER);
        peer->is_active = true;
        peer->active_since = raft->now;
        event->node = peer->id;
        event->is_active = true;
    }
}

static void count_grant(struct raft *raft, struct peer *peer, const struct raft_message *message)
{
    span granted =
        RAFT_MUTANT(COUNTS_WHAT_IT_ASKED) ? raft->settings.lease : message->heartbeat_reply.granted;

    leader_lease_count(raft, peer, message->heartbeat_reply.sent, granted);
    leader_lease_renew(raft);
}

void recv_heartbeat_reply(struct raft *raft, const struct raft_message *message)
{
    struct peer *peer = peer_find(raft, message->from);
    instant sent = message->heartbeat_reply.sent;
    bool is_honest = !instant_before(raft->now, sent) &&
                     !instant_before(sent, raft->leader_since) &&
                     message->heartbeat_reply.granted.ns <= raft->settings.lease.ns;

    if (message->term > raft->hard.term) {
        convert_adopt_term(raft, message->term);
        return;
    }
    if (!peer || raft->role != RAFT_LEADER || message->term != raft->hard.term || !is_honest) {
        return;
    }
    hear(raft, peer);
    measure(raft, peer, sent);
    peer->may_lead = message->heartbeat_reply.may_lead;
    peer->silent_until = instant_add(raft->now, message->heartbeat_reply.silence);
    if (message->heartbeat_reply.read_round > peer->read_round &&
        message->heartbeat_reply.read_round <= raft->read_round) {
        peer->read_round = message->heartbeat_reply.read_round;
    }
    count_grant(raft, peer, message);
    heir_choose(raft);
    read_advance(raft);
    if (raft->configuration.is_joint) {
        reconfigure_advance(raft); /* the lease may be covered now */
    }
}

/* The leader has voided its lease. The heir that it names campaigns at once; the others wait. */
void recv_resign(struct raft *raft, const struct raft_message *message)
{
    struct raft_proof proof = {
        .node = message->from, .incarnation = message->incarnation, .through_term = message->term};
    bool is_for_us;

    if (message->term < raft->hard.term || raft->role == RAFT_LEADER ||
        promise_is_disproved(raft, message)) {
        return;
    }
    if (message->term > raft->hard.term) {
        convert_adopt_term(raft, message->term);
    }
    (void)promise_apply_proof(raft, RAFT_PROOF_RESIGNATION, &proof);
    raft->proof = proof;
    is_for_us = message->type == RAFT_MSG_TIMEOUT_NOW;
    election_inherit(raft, is_for_us ? raft->id : message->resign.heir);
}

/* Promises, silence and proofs: what keeps a second leader from being elected under a lease.
 *
 *   free ──reply to a heartbeat, or a vote (promise_give)─▶ promised to (leader, incarnation)
 *                                                            until T
 *   promised ──time: T has passed──────────────▶ free
 *   promised ──proof that fits (promise_apply_proof)──▶ free
 *   start ──▶ silent for the longest time that may have been promised before, then free
 *
 * The promise counts in the lease of that leader. While it stands, this node gives no other node a
 * vote or a pre-vote, and does not campaign.
 */
#include "raft/promise.h"

#include "raft/mutants.h"
#include "raft/peer.h"
#include "raft/state.h"
#include "raft/update.h"

bool promise_is_active(const struct raft *raft)
{
    return raft->promise.to != RAFT_NOBODY && instant_before(raft->now, raft->promise.until);
}

/* No promise to a leader covers the own program, which may act on when this process is gone. */
void promise_own_lease(struct raft *raft)
{
    if (raft->is_outlived && raft->hard.promised_max.ns < raft->settings.heartbeat_timeout.ns &&
        !RAFT_MUTANT(OWN_LEASE_FORGOTTEN)) {
        raft->hard.promised_max = raft->settings.heartbeat_timeout;
        update_hard_changed(raft, HARD_NEEDED);
    }
}

static bool is_silent(const struct raft *raft)
{
    return instant_before(raft->now, raft->silent_until) && !RAFT_MUTANT(NO_SILENCE);
}

span promise_silence(const struct raft *raft)
{
    return is_silent(raft) ? instant_since(raft->silent_until, raft->now) : SPAN_NS(0);
}

static bool leads_under_lease(const struct raft *raft)
{
    return raft->role == RAFT_LEADER && raft->lease.held &&
           instant_before(raft->now, raft->lease.end);
}

/* A promise to an earlier incarnation that no proof has ended does not allow a vote for this one.
 */
static bool is_promised_to(const struct raft *raft, raft_id candidate)
{
    const struct peer *peer = peer_find(raft, candidate);

    return raft->promise.to == candidate && peer && raft->promise.incarnation == peer->incarnation;
}

bool promise_allows_vote(const struct raft *raft, raft_id candidate)
{
    if (is_silent(raft) || (raft->storage_failed && !RAFT_MUTANT(STORAGE_FAILURE_IGNORED))) {
        return false;
    }
    if (leads_under_lease(raft) && !RAFT_MUTANT(LEADER_VOTES_UNDER_LEASE)) {
        return false;
    }
    if (RAFT_MUTANT(STICKINESS_IGNORED)) {
        return true;
    }
    return !promise_is_active(raft) || is_promised_to(raft, candidate);
}

bool promise_allows_candidacy(const struct raft *raft)
{
    if (is_silent(raft) || raft->storage_failed) {
        return false;
    }
    return !promise_is_active(raft) || RAFT_MUTANT(CANDIDACY_UNGATED);
}

instant promise_candidacy_at(const struct raft *raft)
{
    instant at = raft->silent_until;
    if (promise_is_active(raft)) {
        at = instant_max(at, raft->promise.until);
    }
    return instant_max(at, raft->now);
}

span promise_give(struct raft *raft, const struct raft_message *message, span asked)
{
    span granted = asked;
    struct promise *promise = &raft->promise;
    const struct peer *leader = peer_find(raft, message->from);

    if (granted.ns <= 0) {
        return SPAN_NS(0);
    }
    if (granted.ns > raft->settings.heartbeat_timeout.ns && !RAFT_MUTANT(GRANT_NOT_LIMITED)) {
        granted = raft->settings.heartbeat_timeout;
    }
    if (raft->hard.promised_max.ns < (RAFT_MUTANT(PROMISED_ONCE) ? SPAN_NS(1) : granted).ns) {
        raft->hard.promised_max =
            raft->settings.heartbeat_timeout; /* the most that it will ever grant */
        update_hard_changed(raft, HARD_NEEDED);
    }
    if (promise->to != message->from || promise->incarnation != message->incarnation) {
        promise->until = INSTANT_PAST;
    }
    promise->is_outlived = message->is_outlived || (leader && leader->is_outlived) ||
                           (promise->is_outlived && promise->to == message->from);
    promise->to = message->from;
    promise->incarnation = message->incarnation;
    promise->term = message->term;
    promise->until = instant_max(promise->until, instant_add(raft->now, granted));
    return granted;
}

bool promise_is_disproved(const struct raft *raft, const struct raft_message *message)
{
    const struct peer *peer = peer_find(raft, message->from);

    if (!peer) {
        return false;
    }
    if (message->incarnation <= peer->dead_through) {
        return true;
    }
    return message->incarnation == peer->resigned_incarnation &&
           message->term <= peer->resigned_through;
}

/* A proof about a later incarnation proves nothing about one whose program may outlive it. */
static bool is_about(const struct raft_proof *proof, uint64_t incarnation, bool is_outlived)
{
    if (RAFT_MUTANT(CERTIFICATE_ANY_INCARNATION) || incarnation == proof->incarnation) {
        return true;
    }
    return incarnation < proof->incarnation && (!is_outlived || RAFT_MUTANT(PROOF_OF_LATER_LIFE));
}

static bool fits(const struct raft_proof *proof, raft_term term)
{
    return term <= proof->through_term || RAFT_MUTANT(RESIGNATION_ANY_TERM);
}

/* The peer of a leader that was removed is forgotten, but not the promise to it. */
static bool fits_promise(const struct raft *raft, const struct raft_proof *proof)
{
    const struct promise *promise = &raft->promise;
    const struct peer *peer = peer_find(raft, promise->to);
    bool is_outlived = promise->is_outlived || (peer && peer->is_outlived);

    return promise_is_active(raft) && proof->node == promise->to &&
           is_about(proof, promise->incarnation, is_outlived) && fits(proof, promise->term);
}

static bool fits_leader(const struct raft *raft, const struct raft_proof *proof)
{
    const struct peer *peer = peer_find(raft, raft->leader);

    return raft->leader != raft->id && proof->node == raft->leader &&
           is_about(proof, raft->leader_incarnation, !peer || peer->is_outlived) &&
           fits(proof, raft->hard.term);
}

static void remember(struct raft *raft, const struct raft_proof *proof)
{
    struct peer *peer = peer_find(raft, proof->node);

    if (!peer) {
        return;
    }
    if (proof->through_term == RAFT_TERM_FOREVER) {
        if (proof->incarnation > peer->dead_through) {
            peer->dead_through = proof->incarnation;
        }
    } else if (proof->incarnation > peer->resigned_incarnation ||
               (proof->incarnation == peer->resigned_incarnation &&
                proof->through_term > peer->resigned_through)) {
        peer->resigned_incarnation = proof->incarnation;
        peer->resigned_through = proof->through_term;
    }
}

bool promise_apply_proof(struct raft *raft, enum raft_proof_kind kind,
                         const struct raft_proof *proof)
{
    bool ended = false;
    struct raft_event *event;

    if (proof->node == raft->id || proof->node == RAFT_NOBODY) {
        return false; /* this process is alive, so the proof is wrong */
    }
    if (kind != RAFT_PROOF_EOF_ONLY || RAFT_MUTANT(EOF_IS_PROOF)) {
        remember(raft, proof);
        if (fits_promise(raft, proof)) {
            raft->promise = (struct promise){0};
            ended = true;
        }
        ended |= fits_leader(raft, proof);
    }
    if (ended) {
        raft->proof = *proof;
    }
    event = update_event(raft, ended ? RAFT_EV_PROOF_ACCEPTED : RAFT_EV_PROOF_IGNORED);
    event->proof_kind = kind;
    event->node = proof->node;
    event->incarnation = proof->incarnation;
    return ended;
}

bool promise_observe_incarnation(struct raft *raft, const struct raft_message *message,
                                 bool *ret_is_leader_gone)
{
    struct peer *peer = peer_find(raft, message->from);
    struct raft_proof proof = {.node = message->from,
                               .incarnation = message->incarnation - 1,
                               .through_term = RAFT_TERM_FOREVER};

    *ret_is_leader_gone = false;
    if (!peer) {
        return true;
    }
    if (message->incarnation < peer->incarnation) {
        return false;
    }
    if (message->incarnation > peer->incarnation) {
        bool is_proof =
            peer->incarnation > 0 && (!peer->is_outlived || RAFT_MUTANT(OUTLIVED_BY_NOTHING));
        peer->incarnation = message->incarnation;
        *ret_is_leader_gone =
            is_proof && (raft->promise.to == message->from || raft->leader == message->from) &&
            promise_apply_proof(raft, RAFT_PROOF_GREETING, &proof) && raft->leader == message->from;
    }
    peer->is_outlived |= message->is_outlived;
    return true;
}

/* Requests for votes and pre-votes, and their replies. */
#include "raft/recv_vote.h"

#include "raft/candidacy.h"
#include "raft/convert.h"
#include "raft/election.h"
#include "raft/log.h"
#include "raft/mutants.h"
#include "raft/peer.h"
#include "raft/pledge.h"
#include "raft/promise.h"
#include "raft/quorum.h"
#include "raft/state.h"
#include "raft/update.h"

static bool is_up_to_date(const struct raft *raft, const struct raft_message *request)
{
    raft_term last_term = log_last_term(&raft->log);

    if (RAFT_MUTANT(LOG_NOT_COMPARED)) {
        return true;
    }
    if (request->vote.last_term != last_term) {
        return request->vote.last_term > last_term;
    }
    return request->vote.last_index >= log_last_index(&raft->log);
}

/* The request may carry the proof that ends our promise; then there is no leader to wait for. */
static void take_proof(struct raft *raft, const struct raft_message *request)
{
    const struct raft_proof *proof = &request->vote.proof;

    if (proof->node == RAFT_NOBODY || proof->node == request->from) {
        return;
    }
    if (promise_apply_proof(raft, RAFT_PROOF_VOTE, proof) && raft->role == RAFT_FOLLOWER &&
        raft->leader == proof->node) {
        convert_to_follower(raft, RAFT_NOBODY, 0);
        raft->election_at = instant_add(raft->now, candidacy_round_time(raft));
    }
}

/* A leader that this node hears is not replaced, whether or not it has a lease. */
static bool follows_another(const struct raft *raft, raft_id candidate)
{
    return raft->leader != RAFT_NOBODY && raft->leader != candidate &&
           (raft->role == RAFT_LEADER || instant_before(raft->now, raft->leader_until)) &&
           !RAFT_MUTANT(STICKINESS_IGNORED);
}

void recv_pre_vote(struct raft *raft, const struct raft_message *message)
{
    struct raft_message *reply;
    bool is_welcome, granted;

    take_proof(raft, message);
    if (!is_up_to_date(raft, message)) {
        election_note_shorter(raft);
    }
    is_welcome = message->term > raft->hard.term && promise_allows_vote(raft, message->from) &&
                 !follows_another(raft, message->from) && is_up_to_date(raft, message);
    granted = is_welcome && pledge_allows(raft, message->from, message->term);
    reply = update_message(raft, RAFT_MSG_PRE_VOTE_REPLY, message->from, AFTER_NOTHING);
    if (reply) {
        reply->term = granted      ? message->term
                      : is_welcome ? raft->hard.pledged_term /* in this term it would be granted */
                                   : raft->hard.term;
        reply->vote_reply.granted = granted;
    }
}

void recv_pre_vote_reply(struct raft *raft, const struct raft_message *message)
{
    struct peer *peer = peer_find(raft, message->from);

    if (!message->vote_reply.granted && message->term > raft->hard.term) {
        convert_adopt_term(raft, message->term);
        return;
    }
    if (!peer || raft->role != RAFT_PRE_CANDIDATE) {
        return;
    }
    if (message->vote_reply.granted && message->term == pledge_next_term(raft)) {
        peer->vote = VOTE_GRANTED;
    } else if (!message->vote_reply.granted && peer->vote == VOTE_UNKNOWN) {
        peer->vote = VOTE_REFUSED;
    }
    election_count_vote(raft);
}

static bool grant(struct raft *raft, const struct raft_message *message)
{
    if (message->term < raft->hard.term || !is_up_to_date(raft, message)) {
        return false;
    }
    if (raft->hard.vote != RAFT_NOBODY && raft->hard.vote != message->from) {
        return false;
    }
    if (raft->hard.vote != message->from) {
        raft->hard.vote = message->from;
        update_hard_changed(raft, HARD_NEEDED);
        if (RAFT_MUTANT(TERM_NOT_STORED)) {
            raft->out.hard_changed =
                false; /* the term that was just adopted is not stored either */
        }
    }
    if (raft->role == RAFT_PRE_CANDIDATE) {
        convert_to_follower(raft, RAFT_NOBODY, 0);
    }
    raft->election_at = instant_add(raft->now, candidacy_round_time(raft));
    return true;
}

static bool votes_for_the_same(const struct raft *raft, const struct peer *peer)
{
    return peer->id == raft->id || peer->id == raft->hard.vote;
}

/* Where this vote and the candidate's own are a quorum, the candidate leads as soon as it has this
 * reply. So the reply brings the first promise along, and saves it the round of heartbeats. Where
 * others must vote, too, they may not, and a promise to a node that does not lead would only be in
 * the way. */
static span promise_with_vote(struct raft *raft, const struct raft_message *message)
{
    if (!quorum_holds(raft, votes_for_the_same) || promise_is_disproved(raft, message)) {
        return SPAN_NS(0);
    }
    return RAFT_MUTANT(VOTE_PROMISES_NOTHING)
               ? raft->settings.heartbeat_timeout
               : promise_give(raft, message, raft->settings.heartbeat_timeout);
}

/* A promise holds back votes too, not only pre-votes: otherwise an heir, which skips the pre-vote,
 * could win under a lease that still holds. The request's term is not even adopted. */
void recv_vote(struct raft *raft, const struct raft_message *message)
{
    struct raft_message *reply;
    span promised = SPAN_NS(0);
    bool allowed;
    bool granted = false;

    if (message->term == raft->hard.term && raft->leader == message->from) {
        return; /* a late copy: it has won this term */
    }
    take_proof(raft, message);
    allowed = promise_allows_vote(raft, message->from) || RAFT_MUTANT(VOTE_UNGATED);
    if (allowed && message->term > raft->hard.term) {
        convert_adopt_term(raft, message->term);
    }
    if (allowed && (raft->role == RAFT_FOLLOWER || raft->role == RAFT_PRE_CANDIDATE)) {
        granted = grant(raft, message);
    }
    if (granted) {
        promised = promise_with_vote(raft, message);
    }
    reply = update_message(raft, RAFT_MSG_VOTE_REPLY, message->from,
                           RAFT_MUTANT(VOTE_NOT_STORED) ? AFTER_NOTHING : AFTER_HARD);
    if (reply) {
        reply->vote_reply.granted = granted;
        reply->vote_reply.promised = promised;
        reply->vote_reply.promised_to = message->incarnation;
    }
}

/* A promise to an earlier incarnation began before this one asked. */
static span promise_of(const struct raft *raft, const struct raft_message *reply)
{
    bool is_for_this_life =
        reply->vote_reply.promised_to == raft->incarnation || RAFT_MUTANT(PROMISE_OF_EARLIER_LIFE);

    return is_for_this_life ? reply->vote_reply.promised : SPAN_NS(0);
}

void recv_vote_reply(struct raft *raft, const struct raft_message *message)
{
    struct peer *peer = peer_find(raft, message->from);

    if (message->term > raft->hard.term) {
        convert_adopt_term(raft, message->term);
        return;
    }
    if (!peer || raft->role != RAFT_CANDIDATE ||
        (message->term != raft->hard.term && !RAFT_MUTANT(VOTE_OF_ANY_TERM))) {
        return;
    }
    if (message->vote_reply.granted) {
        peer->vote = VOTE_GRANTED;
        peer->vote_promise = promise_of(raft, message);
        election_count_vote(raft);
    }
}

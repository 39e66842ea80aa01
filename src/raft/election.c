/* Campaigns.
 *
 * The happy path: silence for the heartbeat timeout, a wait by priority and chance, pre-votes from
 * a quorum, votes from a quorum, leader. With a proof of the leader's death its heir skips the wait
 * and the pre-votes; every other node waits a round, so that the two do not collide.
 * A round without a winner ends after a random time, and the node tries again.
 */
#include "raft/election.h"

#include "raft/candidacy.h"
#include "raft/convert.h"
#include "raft/leader.h"
#include "raft/log.h"
#include "raft/mutants.h"
#include "raft/peer.h"
#include "raft/pledge.h"
#include "raft/promise.h"
#include "raft/quorum.h"
#include "raft/state.h"
#include "raft/update.h"

void election_note_shorter(struct raft *raft)
{
    if (raft->leader == RAFT_NOBODY && !raft->must_help && raft->role == RAFT_FOLLOWER) {
        raft->must_help = true;
        if (candidacy_is_caretaker(raft)) {
            raft->election_at =
                candidacy_after(raft, instant_add(raft->now, raft->settings.election_timeout_max));
        }
    }
}

static bool granted_by(const struct raft *raft, const struct peer *peer)
{
    return peer->id == raft->id || peer->vote == VOTE_GRANTED;
}

/* A candidate wins a term only after it has stored the vote for itself, even if all others voted
 * for it: it could otherwise forget the term, campaign in it again, and win it twice. */
static bool may_win(const struct raft *raft)
{
    return raft->role == RAFT_PRE_CANDIDATE || raft->stored_write >= raft->vote_write ||
           RAFT_MUTANT(OWN_VOTE_COUNTED_EARLY);
}

static bool not_refused_by(const struct raft *raft, const struct peer *peer)
{
    (void)raft;
    return peer->vote != VOTE_REFUSED;
}

/* A request depends on nothing that is still to be stored, so the others store their votes while
 * this node stores its own. */
static void ask(struct raft *raft, enum raft_message_type type, raft_term term)
{
    for (size_t i = 0; i < raft->peer_count; i++) {
        struct peer *peer = &raft->peers[i];
        struct raft_message *message;
        if (peer->id == raft->id || !member_votes(peer_member(raft, peer))) {
            continue;
        }
        message = update_message(raft, type, peer->id, AFTER_NOTHING);
        if (message) {
            message->term = term;
            message->vote.last_index = log_last_index(&raft->log);
            message->vote.last_term = log_last_term(&raft->log);
            message->vote.proof = raft->proof;
        }
    }
}

static void ask_before(struct raft *raft)
{
    convert_to_pre_candidate(raft);
    ask(raft, RAFT_MSG_PRE_VOTE, pledge_next_term(raft));
    election_count_vote(raft);
}

static void campaign(struct raft *raft)
{
    convert_to_candidate(raft);
    ask(raft, RAFT_MSG_VOTE, raft->hard.term);
    election_count_vote(raft);
}

/* A quorum cannot be reached in this round any more, so the next one begins soon. Promises to a
 * silent leader end within a moment of each other, not at once. */
static void retry_soon(struct raft *raft)
{
    int64_t pause = raft->settings.heartbeat_interval.ns;
    if (pause > raft->settings.election_timeout_min.ns) {
        pause = raft->settings.election_timeout_min.ns;
    }
    pause = pause / 2 + (int64_t)candidacy_random(raft, (uint64_t)pause / 2 + 1);
    raft->election_at = instant_min(raft->election_at, instant_add(raft->now, SPAN_NS(pause)));
}

void election_count_vote(struct raft *raft)
{
    if (may_win(raft) && quorum_holds(raft, granted_by)) {
        if (raft->role == RAFT_PRE_CANDIDATE) {
            campaign(raft);
        } else {
            leader_begin(raft);
        }
    } else if (raft->role == RAFT_PRE_CANDIDATE && !quorum_holds(raft, not_refused_by)) {
        retry_soon(raft);
    }
}

static void fail_round(struct raft *raft)
{
    struct raft_event *event = update_event(raft, RAFT_EV_ELECTION_FAILED);
    event->term = raft->hard.term;
}

/* Nodes that may lead come first, for a long time. If none of them campaigns (the only one may not
 * know yet that it may lead), a voter tries as caretaker. */
static void wait_for_others(struct raft *raft)
{
    enum { ROUNDS_LEFT_TO_OTHERS = 8 };
    bool was_alone = raft->role == RAFT_FOLLOWER && raft->leader == RAFT_NOBODY;
    span long_time = {ROUNDS_LEFT_TO_OTHERS * raft->settings.election_timeout_max.ns};

    convert_to_follower(raft, RAFT_NOBODY, 0);
    raft->must_help = was_alone && !raft->storage_failed;
    raft->election_at = raft->storage_failed
                            ? INSTANT_NEVER
                            : candidacy_after(raft, instant_add(raft->now, long_time));
}

void election_tick(struct raft *raft)
{
    if (instant_before(raft->now, raft->election_at)) {
        return;
    }
    if (raft->role == RAFT_CANDIDATE && raft->stored_write < raft->vote_write) {
        /* The own disk is slower than the round; another write would only queue up behind this one.
         */
        raft->election_at = instant_add(raft->now, candidacy_round_time(raft));
        return;
    }
    if (raft->role == RAFT_CANDIDATE) {
        fail_round(raft);
    }
    if (!candidacy_may_run(raft)) {
        wait_for_others(raft);
    } else if (!promise_allows_candidacy(raft)) {
        convert_to_follower(raft, RAFT_NOBODY, 0);
        raft->election_at = candidacy_after(raft, promise_candidacy_at(raft));
    } else {
        ask_before(raft);
    }
}

/* The heir needs no pre-votes: the proof, which its requests carry, says that no lease is in the
 * way. */
void election_inherit(struct raft *raft, raft_id heir)
{
    convert_to_follower(raft, RAFT_NOBODY, 0);
    if (heir == raft->id && candidacy_may_run(raft) && promise_allows_candidacy(raft)) {
        campaign(raft);
    } else {
        raft->election_at =
            RAFT_MUTANT(HEIR_ALONE_RUNS)
                ? INSTANT_NEVER
                : candidacy_after(raft,
                                  instant_add(raft->now, raft->settings.election_timeout_min));
    }
}

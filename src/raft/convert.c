/* Every change of role, and nothing but that.
 *
 *                      doubts the leader            quorum of pre-votes
 *        ┌─▶ FOLLOWER ───────────────────▶ PRE_CANDIDATE ─────────▶ CANDIDATE
 *        │    │   ▲                          │     ▲                 │  │
 *        │    │   └── leader heard, term ◀───┘     └── round ends ◀──┘  │ quorum of votes
 *        │    └── proof and heir, or the leader's request ─────────▲   ▼
 *        └──────── lease over, higher term, resigned, storage ────── LEADER
 *
 *   convert_to_follower       FOLLOWER, of a leader or of none
 *   convert_to_pre_candidate  PRE_CANDIDATE: the term stays
 *   convert_to_candidate      CANDIDATE: the next term, or the pledged one; votes for itself
 *   convert_to_leader         LEADER without a lease: that takes promises of a quorum
 *   convert_lose              LEADER ──▶ FOLLOWER: the lease is void first
 */
#include "raft/convert.h"

#include "raft/candidacy.h"
#include "raft/election_rate.h"
#include "raft/incoming.h"
#include "raft/mutants.h"
#include "raft/peer.h"
#include "raft/pledge.h"
#include "raft/promise.h"
#include "raft/quorum.h"
#include "raft/read.h"
#include "raft/state.h"
#include "raft/update.h"

static void set_role(struct raft *raft, enum raft_role role)
{
    if (raft->role != role) {
        raft->role = role;
        update_event(raft, RAFT_EV_ROLE)->role = role;
    }
}

static void set_leader(struct raft *raft, raft_id leader, uint64_t incarnation)
{
    if (raft->leader != leader || raft->leader_incarnation != incarnation) {
        struct raft_event *event = update_event(raft, RAFT_EV_LEADER);
        event->node = leader;
        event->incarnation = incarnation;
        event->term = raft->hard.term;
        raft->leader = leader;
        raft->leader_incarnation = incarnation;
    }
    if (leader != RAFT_NOBODY) {
        raft->proof = (struct raft_proof){0};
        raft->must_help = raft->must_help && leader == raft->id;
        election_rate_note(raft, raft->hard.term, leader);
    }
}

static void clear_votes(struct raft *raft)
{
    for (size_t i = 0; i < raft->peer_count; i++) {
        raft->peers[i].vote = VOTE_UNKNOWN;
        raft->peers[i].vote_promise = SPAN_NS(0);
    }
}

void convert_to_follower(struct raft *raft, raft_id leader, uint64_t leader_incarnation)
{
    RAFT_INVARIANT(raft->role != RAFT_LEADER); /* a leader loses first: convert_lose */
    if (leader != raft->leader) {
        raft->heir_named = RAFT_NOBODY;
        incoming_drop(raft);
    }
    set_role(raft, RAFT_FOLLOWER);
    set_leader(raft, leader, leader_incarnation);
}

void convert_to_pre_candidate(struct raft *raft)
{
    RAFT_INVARIANT(raft->role != RAFT_LEADER);
    RAFT_INVARIANT(!promise_is_active(raft) || RAFT_MUTANT(CANDIDACY_UNGATED));
    clear_votes(raft);
    set_role(raft, RAFT_PRE_CANDIDATE);
    set_leader(raft, RAFT_NOBODY, 0);
    raft->election_at = instant_add(raft->now, candidacy_round_time(raft));
}

void convert_to_candidate(struct raft *raft)
{
    struct raft_event *event;

    RAFT_INVARIANT(raft->role != RAFT_LEADER);
    RAFT_INVARIANT(promise_allows_candidacy(raft));
    clear_votes(raft);
    set_leader(raft, RAFT_NOBODY, 0);
    if (pledge_lets_run(raft)) {
        raft->hard.term = raft->hard.pledged_term;
        raft->vote_write = 0; /* the stored pledge records it */
        update_hard_changed(raft, HARD_LATER);
    } else {
        raft->hard.term = pledge_next_term(raft);
        raft->vote_write = update_write_id(raft);
        update_hard_changed(raft, HARD_NEEDED);
    }
    raft->lost_rounds++;
    raft->hard.vote = raft->id;
    raft->campaigned_at = raft->now;
    if (!quorum_is_self(raft)) {
        promise_own_lease(raft);
    }
    set_role(raft, RAFT_CANDIDATE);
    raft->election_at = instant_add(raft->now, candidacy_round_time(raft));
    event = update_event(raft, RAFT_EV_ELECTION_STARTED);
    event->term = raft->hard.term;
}

void convert_to_leader(struct raft *raft)
{
    RAFT_INVARIANT(raft->role == RAFT_CANDIDATE);
    peers_reset(raft);
    raft->uncommitted_bytes = 0;
    raft->commit_before = raft->commit;
    raft->departed_count = 0;
    raft->term_start = RAFT_NOT_YET; /* see leader_open_term */
    raft->leader_since = raft->now;
    raft->lease = (struct raft_lease){.epoch = raft->hard.term};
    raft->jeopardy_at = INSTANT_NEVER;
    raft->announce_at = INSTANT_NEVER;
    raft->heartbeat_at = raft->now;
    raft->open_term_at = instant_add(raft->now, raft->settings.heartbeat_interval);
    raft->election_at = INSTANT_NEVER;
    raft->heir = RAFT_NOBODY;
    raft->heir_term = 0;
    raft->transfer =
        (struct transfer){.is_wanted = candidacy_is_caretaker(raft),
                          .deadline = instant_add(raft->now, raft->settings.heartbeat_timeout)};
    raft->drain = (struct drain){0};
    raft->read_round = 0;
    set_role(raft, RAFT_LEADER);
    set_leader(raft, raft->id, raft->incarnation);
}

void convert_lose(struct raft *raft, enum raft_loss loss)
{
    struct raft_event *event;
    bool was_held = raft->lease.held;

    RAFT_INVARIANT(raft->role == RAFT_LEADER);
    raft->lease.held = false;
    raft->transfer = (struct transfer){0};
    raft->drain = (struct drain){0};
    raft->heir = RAFT_NOBODY;
    raft->must_help = false;
    raft->jeopardy_at = INSTANT_NEVER;
    event = update_event(raft, was_held ? RAFT_EV_LOST : RAFT_EV_ELECTION_FAILED);
    event->loss = loss;
    event->term = raft->hard.term;
    read_refuse_all(raft);
    set_role(raft, RAFT_FOLLOWER);
    set_leader(raft, RAFT_NOBODY, 0);
    raft->election_at = instant_add(raft->now, candidacy_round_time(raft));
}

void convert_adopt_term(struct raft *raft, raft_term term)
{
    raft_id vote = RAFT_NOBODY;
    bool is_covered;

    RAFT_INVARIANT(term > raft->hard.term);
    if (!pledge_allows(raft, RAFT_NOBODY,
                       term)) { /* enter no term below it, and vote there as pledged */
        term = raft->hard.pledged_term;
        vote = raft->hard.pledged_to;
    }
    is_covered = pledge_covers(raft, vote, term);
    if (raft->role == RAFT_LEADER) {
        convert_lose(raft, RAFT_LOSS_SUPERSEDED);
    }
    raft->lost_rounds++;
    raft->hard.term = term;
    raft->hard.vote = vote;
    update_hard_changed(raft, is_covered ? HARD_LATER : HARD_NEEDED);
    if (raft->role != RAFT_FOLLOWER || raft->leader != RAFT_NOBODY) {
        convert_to_follower(raft, RAFT_NOBODY, 0);
        raft->election_at = candidacy_after(raft, raft->now);
    }
}

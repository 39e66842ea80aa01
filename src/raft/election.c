/* When to run, and asking for votes.
 *
 * The happy path: silence for the heartbeat timeout, a wait by priority and chance, pre-votes from
 * a quorum, real votes from a quorum, leader. With a proof of the leader's death its heir skips the
 * waiting and the pre-votes; everybody else waits a round, so that the two do not collide.
 * A round without a winner ends after a random time and is tried again.
 */
#include "raft/internal.h"

uint64_t election_random(struct raft *raft, uint64_t below)
{
    /* splitmix64: small, and good enough to keep nodes apart */
    uint64_t z = raft->random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return below > 0 ? z % below : 0;
}

static int64_t spread_ns(const struct raft *raft)
{
    return raft->settings.election_timeout_max.ns - raft->settings.election_timeout_min.ns;
}

/* Where a disk or the network needs longer than a round, each round ends before its votes are
 * there, and so would the next. So after some terms in which nothing was committed every further
 * round lasts twice as long, up to the heartbeat timeout: a group whose votes take longer could not
 * keep a lease either. */
static int64_t growth(const struct raft *raft)
{
    enum { ROUNDS_OF_USUAL_LENGTH = 3 };
    int64_t longest = raft->settings.heartbeat_timeout.ns;
    int64_t usual = raft->settings.election_timeout_max.ns;
    int64_t factor = 1;

    for (uint32_t i = ROUNDS_OF_USUAL_LENGTH; i < raft->lost_rounds; i++) {
        if (2 * factor * usual > longest || RAFT_MUTANT(ROUNDS_NEVER_GROW)) {
            break;
        }
        factor *= 2;
    }
    return factor;
}

span election_round_time(struct raft *raft)
{
    int64_t more = (int64_t)election_random(raft, (uint64_t)spread_ns(raft) + 1);
    return SPAN_NS(growth(raft) * (raft->settings.election_timeout_min.ns + more));
}

/* Where this node stands among the priorities of those who may lead: 0 is the highest, of *levels.
 */
static uint32_t priority_level(const struct raft *raft, uint32_t *levels)
{
    const struct raft_configuration *configuration = &raft->configuration;
    const struct raft_member *self = raft_configuration_find(configuration, raft->id);
    uint32_t level = 0;

    *levels = 0;
    for (size_t i = 0; i < configuration->count; i++) {
        const struct raft_member *member = &configuration->members[i];
        bool is_first = member_may_lead(member);
        for (size_t j = 0; j < i && is_first; j++) {
            const struct raft_member *other = &configuration->members[j];
            is_first = !member_may_lead(other) || other->priority != member->priority;
        }
        if (is_first) {
            (*levels)++;
            level += self && member->priority > self->priority;
        }
    }
    return level;
}

instant election_after(struct raft *raft, instant from)
{
    uint32_t levels;
    uint32_t level = priority_level(raft, &levels);
    int64_t window = spread_ns(raft) / (levels > 0 ? levels : 1);
    int64_t wait = level * window + (int64_t)election_random(raft, (uint64_t)window + 1);
    return instant_add(from, SPAN_NS(wait));
}

static bool may_lead_in(const struct raft_configuration *configuration, raft_id id)
{
    const struct raft_member *member = raft_configuration_find(configuration, id);
    return member && member_may_lead(member);
}

static bool votes_in(const struct raft_configuration *configuration, raft_id id)
{
    const struct raft_member *member = raft_configuration_find(configuration, id);
    return member && member_votes(member);
}

/* Who may not lead in the last configuration of its log may still have to: it can be the only one
 * with a log long enough, and its vote be needed by the others, to whom it cannot give it (Raft
 * thesis, 4.2.2). */
static bool must_finish_change(const struct raft *raft)
{
    return configuration_before_holds(raft, raft->id, may_lead_in);
}

static bool is_candidate_by_right(const struct raft *raft)
{
    return (raft->eligible || RAFT_MUTANT(CORDON_IGNORED)) &&
           (may_lead_in(&raft->configuration, raft->id) || must_finish_change(raft));
}

/* A witness, or a node that is cordoned, can be the voter without which there is no quorum, and
 * have a longer log than everybody who may lead: nobody could ever be elected. Such a node runs
 * after all, asks for no lease, and hands over as soon as somebody has what it has. */
bool election_is_caretaker(const struct raft *raft)
{
    return raft->must_help && !is_candidate_by_right(raft) &&
           (votes_in(&raft->configuration, raft->id) ||
            configuration_before_holds(raft, raft->id, votes_in));
}

void election_note_shorter(struct raft *raft)
{
    if (raft->leader == RAFT_NOBODY && !raft->must_help && raft->role == RAFT_FOLLOWER) {
        raft->must_help = true;
        if (election_is_caretaker(raft)) {
            raft->election_at =
                election_after(raft, instant_add(raft->now, raft->settings.election_timeout_max));
        }
    }
}

static bool may_run(const struct raft *raft)
{
    return !raft->storage_failed && pledge_next_term(raft) < RAFT_SANE_MAX &&
           (is_candidate_by_right(raft) || election_is_caretaker(raft));
}

static bool granted_by(const struct raft *raft, const struct peer *peer)
{
    return peer->id == raft->id || peer->vote == VOTE_GRANTED;
}

/* Nobody wins a term that it has not stored, even with all the others' votes: it could forget it,
 * run in it again, and win it twice. */
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

/* Asking stands on nothing that is still to be stored, so the others store their votes while this
 * node stores its own. */
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

void election_campaign(struct raft *raft)
{
    convert_to_candidate(raft);
    ask(raft, RAFT_MSG_VOTE, raft->hard.term);
    election_count_vote(raft);
}

/* A quorum cannot be reached any more: ask again soon, long before the round would have ended.
 * Voters free themselves of a silent leader within a moment of each other, not at once. */
static void retry_soon(struct raft *raft)
{
    int64_t pause = raft->settings.heartbeat_interval.ns;
    if (pause > raft->settings.election_timeout_min.ns) {
        pause = raft->settings.election_timeout_min.ns;
    }
    pause = pause / 2 + (int64_t)election_random(raft, (uint64_t)pause / 2 + 1);
    raft->election_at = instant_min(raft->election_at, instant_add(raft->now, SPAN_NS(pause)));
}

void election_count_vote(struct raft *raft)
{
    if (may_win(raft) && quorum_holds(raft, granted_by)) {
        if (raft->role == RAFT_PRE_CANDIDATE) {
            election_campaign(raft);
        } else {
            convert_to_leader(raft);
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

/* Those who may lead have the first word, for long; if nobody comes forward (because the only one
 * who may lead does not know it yet) a voter tries as caretaker. */
static void wait_for_others(struct raft *raft)
{
    enum { ROUNDS_LEFT_TO_OTHERS = 8 };
    bool was_alone = raft->role == RAFT_FOLLOWER && raft->leader == RAFT_NOBODY;
    span long_time = {ROUNDS_LEFT_TO_OTHERS * raft->settings.election_timeout_max.ns};

    convert_to_follower(raft, RAFT_NOBODY, 0);
    raft->must_help = was_alone && !raft->storage_failed;
    raft->election_at = raft->storage_failed
                            ? INSTANT_NEVER
                            : election_after(raft, instant_add(raft->now, long_time));
}

void election_tick(struct raft *raft)
{
    if (instant_before(raft->now, raft->election_at)) {
        return;
    }
    if (raft->role == RAFT_CANDIDATE && raft->stored_write < raft->vote_write) {
        /* Our own disk is slower than the round: another one would only queue up behind it. */
        raft->election_at = instant_add(raft->now, election_round_time(raft));
        return;
    }
    if (raft->role == RAFT_CANDIDATE) {
        fail_round(raft);
    }
    if (!may_run(raft)) {
        wait_for_others(raft);
    } else if (!promise_allows_candidacy(raft)) {
        convert_to_follower(raft, RAFT_NOBODY, 0);
        raft->election_at = election_after(raft, promise_candidacy_at(raft));
    } else {
        ask_before(raft);
    }
}

static bool is_within_the_hour(const struct raft *raft, instant at)
{
    return instant_since(raft->now, at).ns < SPAN_S(3600).ns;
}

uint32_t election_last_hour(const struct raft *raft)
{
    uint32_t kept = raft->election_count;
    uint32_t count = 0;

    if (kept > RAFT_ELECTIONS_KEPT) {
        kept = RAFT_ELECTIONS_KEPT;
    }
    for (uint32_t i = 0; i < kept; i++) {
        count += is_within_the_hour(raft, raft->elections[i]);
    }
    return count;
}

/* Each change of leader that this node learns of counts once; too many of them are told once, and
 * again only after the rate had fallen. */
void election_note(struct raft *raft, raft_term term, raft_id winner)
{
    struct raft_event *event;
    uint32_t recent;
    uint32_t limit = raft->settings.elections_per_hour_max;

    if (term <= raft->completed_term) {
        return;
    }
    raft->completed_term = term;
    event = update_event(raft, RAFT_EV_ELECTION_COMPLETED);
    event->term = term;
    event->node = winner;

    raft->elections[raft->election_count++ % RAFT_ELECTIONS_KEPT] = raft->now;
    recent = election_last_hour(raft);
    if (limit > 0 && recent > limit && !raft->elections_warned) {
        update_event(raft, RAFT_EV_TOO_MANY_ELECTIONS)->count = recent;
    }
    raft->elections_warned = limit > 0 && recent > limit;
}

/* The leader is proved gone. Its heir runs at once, asking nobody before: the proof, which its
 * requests carry, says that no lease is in the way. The others leave it a round. */
void election_inherit(struct raft *raft, raft_id heir)
{
    convert_to_follower(raft, RAFT_NOBODY, 0);
    if (heir == raft->id && may_run(raft) && promise_allows_candidacy(raft)) {
        election_campaign(raft);
    } else {
        raft->election_at =
            RAFT_MUTANT(HEIR_ALONE_RUNS)
                ? INSTANT_NEVER
                : election_after(raft, instant_add(raft->now, raft->settings.election_timeout_min));
    }
}

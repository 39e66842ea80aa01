/* A leader's lease: asked for with each heartbeat, granted by each voter, covered by a quorum.
 *
 *   heartbeat sent at s ──▶ voter promises g ──▶ answer: (s, g)
 *   that voter covers the leader until s + g * (1 - rho) / (1 + rho), by the leader's clock
 *   the lease ends at the latest instant that a quorum of weight covers
 *
 * Under a joint configuration both halves must cover it. It is not left before the new half covers
 * all of the lease that was given out (leader_lease_is_covered): until then a quorum of the old
 * half is what keeps others from being elected, and afterwards nobody would ask it any more.
 *
 * Counted from the sending, since the voter's promise began after it. At its end the leader steps
 * down, whoever answers later: a leadership that was over is never taken up again in its term.
 */
#include "raft/internal.h"

static int64_t covered_until(const struct raft *raft, const struct peer *peer)
{
    return peer->id == raft->id ? INT64_MAX : peer->granted_until.ns;
}

static span half_of_lease(const struct raft *raft)
{
    return SPAN_NS(raft_settings_shorten(&raft->settings, raft->settings.lease).ns / 2);
}

static void acquire(struct raft *raft)
{
    struct raft_event *event;

    raft->lease.held = true;
    raft->open_term_at = raft->now;
    event = update_event(raft, RAFT_EV_ACQUIRED);
    event->term = raft->lease.epoch;
    event->node = raft->id;
}

/* A caretaker leads only to hand over, and so does a winner that has been cordoned since. */
static bool may_acquire(const struct raft *raft)
{
    return (raft->eligible || RAFT_MUTANT(CORDON_IGNORED)) &&
           (!election_is_caretaker(raft) || RAFT_MUTANT(CARETAKER_TAKES_LEASE));
}

void leader_lease_renew(struct raft *raft)
{
    instant end = {quorum_value(raft, covered_until)};

    if (RAFT_MUTANT(NO_EXPIRY) && instant_before(raft->now, end)) {
        end = INSTANT_NEVER;
    }
    if (!instant_before(raft->now, end) || (!raft->lease.held && !may_acquire(raft))) {
        return;
    }
    if (!raft->lease.held || instant_before(raft->lease.end, end)) {
        raft->lease.end = end;
        raft->jeopardy_at = instant_add(end, SPAN_NS(-half_of_lease(raft).ns));
    }
    if (!raft->lease.held) {
        acquire(raft);
    }
}

/* A lease may always be made shorter. One without an end, of a node that was a quorum alone, must
 * get one before others have a say. */
void leader_lease_cap(struct raft *raft)
{
    span longest = raft_settings_shorten(&raft->settings, raft->settings.lease);

    if (!raft->lease.held || RAFT_MUTANT(ENDLESS_NOT_CAPPED)) {
        return;
    }
    raft->lease.end = instant_min(raft->lease.end, instant_add(raft->now, longest));
    raft->jeopardy_at = instant_add(raft->lease.end, SPAN_NS(-half_of_lease(raft).ns));
    leader_lease_renew(raft); /* who is still a quorum alone needs no end */
}

bool leader_lease_is_covered(struct raft *raft)
{
    instant covered = {quorum_value(raft, covered_until)};

    return !raft->lease.held || !instant_before(covered, raft->lease.end) ||
           RAFT_MUTANT(JOINT_LEFT_EARLY);
}

/* Before anything else in a step. A loop that came late was stopped or stalled: that is said apart
 * from a group that does not answer. */
void leader_lease_expire(struct raft *raft, instant last_step)
{
    span asleep = instant_since(raft->now, last_step);
    bool was_late = asleep.ns > 2 * raft->settings.heartbeat_interval.ns;

    if (raft->role != RAFT_LEADER || RAFT_MUTANT(NO_EXPIRY)) {
        return;
    }
    if (raft->lease.held && !instant_before(raft->now, raft->lease.end)) {
        convert_lose(raft, was_late ? RAFT_LOSS_EXPIRED : RAFT_LOSS_LOST_QUORUM);
    } else if (!raft->lease.held && instant_since(raft->now, raft->leader_since).ns >=
                                        raft->settings.heartbeat_timeout.ns) {
        convert_lose(raft, RAFT_LOSS_LOST_QUORUM);
    }
}

static void send_heartbeat(struct raft *raft, struct peer *peer)
{
    struct raft_message *message =
        update_message(raft, RAFT_MSG_HEARTBEAT, peer->id, AFTER_NOTHING);

    if (message) {
        message->heartbeat.sent = raft->now;
        message->heartbeat.lease = raft->settings.lease;
        message->heartbeat.commit = raft->commit < peer->match || RAFT_MUTANT(COMMIT_TOLD_TO_ALL)
                                        ? raft->commit
                                        : peer->match;
        peer->told_commit = message->heartbeat.commit;
        message->heartbeat.heir = raft->heir;
        message->heartbeat.heir_term = raft->heir_term;
        message->heartbeat.read_round = raft->read_round;
    }
}

void leader_heartbeat(struct raft *raft)
{
    raft->commit_before = raft->commit;
    for (size_t i = 0; i < raft->peer_count; i++) {
        if (raft->peers[i].id != raft->id) {
            send_heartbeat(raft, &raft->peers[i]);
        }
    }
    raft->heartbeat_at = instant_add(raft->now, raft->settings.heartbeat_interval);
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

static bool is_fit_to_lead(const struct raft *raft, const struct peer *peer)
{
    return peer->id != raft->id && peer->is_active && peer->may_lead &&
           member_may_lead(peer_member(raft, peer)) && !peer_member(raft, peer)->is_leaving;
}

/* Better placed: has all that is committed, then of higher priority, then clearly nearer. An heir
 * that changes with every measurement, or with every entry on its way, would help nobody. */
static bool is_better(const struct raft *raft, const struct peer *a, const struct peer *b)
{
    int32_t priority_a = peer_member(raft, a)->priority;
    int32_t priority_b = peer_member(raft, b)->priority;
    raft_index has_a = a->match < raft->commit ? a->match : raft->commit;
    raft_index has_b = b->match < raft->commit ? b->match : raft->commit;

    if (has_a != has_b) {
        return has_a > has_b;
    }
    if (priority_a != priority_b) {
        return priority_a > priority_b;
    }
    return 2 * a->round_trip.ns < b->round_trip.ns &&
           b->round_trip.ns - a->round_trip.ns > SPAN_MS(1).ns;
}

/* Each heir in a term of its own, and a new life of the same one too: pledges are never taken back,
 * a later one counts. */
static void name_heir(struct raft *raft, const struct peer *heir)
{
    raft->heir = heir->id;
    raft->heir_incarnation = heir->incarnation;
    raft->heir_term = (raft->heir_term > 0 ? raft->heir_term : raft->hard.term) + 1;
    raft->heartbeat_at = raft->now; /* the followers are to know it at once */
}

void leader_choose_heir(struct raft *raft)
{
    struct peer *best = peer_find(raft, raft->heir);

    if (best && !is_fit_to_lead(raft, best)) {
        best = NULL;
    }
    for (size_t i = 0; i < raft->peer_count; i++) {
        struct peer *peer = &raft->peers[i];
        if (is_fit_to_lead(raft, peer) && (!best || is_better(raft, peer, best))) {
            best = peer;
        }
    }
    if (!best) {
        raft->heir = RAFT_NOBODY;
    } else if (raft->heir != best->id || raft->heir_incarnation != best->incarnation) {
        name_heir(raft, best);
    }
}

/* A node of higher priority that has been well for long enough is handed leadership: by transfer,
 * never by an election against a leader that works. */
static void prefer(struct raft *raft)
{
    const struct raft_member *self = raft_configuration_find(&raft->configuration, raft->id);

    if (raft->role != RAFT_LEADER || raft->transfer.is_wanted || raft->drain.is_told ||
        !raft->lease.held || !self) {
        return;
    }
    for (size_t i = 0; i < raft->peer_count; i++) {
        struct peer *peer = &raft->peers[i];
        if (is_fit_to_lead(raft, peer) && peer_member(raft, peer)->priority > self->priority &&
            instant_since(raft->now, peer->active_since).ns >= raft->settings.preferred_stable.ns &&
            peer->match == log_last_index(&raft->log)) {
            peer->active_since = raft->now; /* a failed try waits as long again */
            (void)drain_is_over(raft, peer->id);
            return;
        }
    }
}

/* Not in the step that wins the election, nor in the one that has the first lease: storing it would
 * come between the votes and the moment at which this leader may act. */
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

static void tell_jeopardy(struct raft *raft)
{
    if (raft->lease.held && !instant_before(raft->now, raft->jeopardy_at)) {
        update_event(raft, RAFT_EV_JEOPARDY)->left = instant_since(raft->lease.end, raft->now);
        raft->jeopardy_at = INSTANT_NEVER;
    }
}

static void tell_commits(struct raft *raft)
{
    if (raft->role == RAFT_LEADER && !instant_before(raft->now, raft->tell_at)) {
        raft->tell_at = INSTANT_NEVER;
        replicate_to_all(raft);
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
    tell_jeopardy(raft);
    drain_tick(raft);
    transfer_tick(raft);
    tell_commits(raft);
    if (raft->role != RAFT_LEADER || instant_before(raft->now, raft->heartbeat_at)) {
        return;
    }
    for (size_t i = 0; i < raft->peer_count; i++) {
        note_silence(raft, &raft->peers[i]);
    }
    leader_choose_heir(raft);
    reconfigure_advance(raft); /* in case memory was short when it was due */
    prefer(raft);
    if (raft->role == RAFT_LEADER) {
        leader_heartbeat(raft);
        replicate_to_all(raft);
    }
}

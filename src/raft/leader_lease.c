/* A leader's lease: asked for with each heartbeat, granted by each voter, covered by a quorum.
 *
 *   heartbeat sent at s ──▶ voter promises g ──▶ reply: (s, g)
 *   that voter covers the leader until s + g * (1 - rho) / (1 + rho), by the leader's clock
 *   the lease ends at the latest instant that a quorum of weight covers
 *
 * The votes that elected a leader may bring the first grants: then s is when it asked for them.
 * A grant counts from the sending, since the voter's promise began after it. At the lease's end the
 * leader steps down, whatever arrives later: a leadership that has ended never resumes in its term.
 *
 * Under a joint configuration both halves must cover the lease. The new half must cover all of it
 * before the joint configuration is left (leader_lease_is_covered): until then the promises of the
 * old half prevent another election, and afterwards no candidate would need the old half.
 */
#include "raft/leader_lease.h"

#include "raft/candidacy.h"
#include "raft/convert.h"
#include "raft/mutants.h"
#include "raft/quorum.h"
#include "raft/state.h"
#include "raft/update.h"

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

/* A caretaker leads only to hand over, and so does a winner that was cordoned meanwhile. */
static bool may_acquire(const struct raft *raft)
{
    return (raft->eligible || RAFT_MUTANT(CORDON_IGNORED)) &&
           (!candidacy_is_caretaker(raft) || RAFT_MUTANT(CARETAKER_TAKES_LEASE));
}

void leader_lease_count(struct raft *raft, struct peer *peer, instant sent, span granted)
{
    span counted = raft_settings_shorten(&raft->settings, granted);
    instant from = RAFT_MUTANT(LEASE_FROM_RECEIPT) ? raft->now : sent;
    instant until = instant_add(from, RAFT_MUTANT(NO_DRIFT_FACTOR) ? granted : counted);

    peer->granted_until = instant_max(peer->granted_until, until);
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

/* A lease may always be made shorter. */
void leader_lease_cap(struct raft *raft)
{
    span longest = raft_settings_shorten(&raft->settings, raft->settings.lease);

    if (!raft->lease.held || RAFT_MUTANT(ENDLESS_NOT_CAPPED)) {
        return;
    }
    raft->lease.end = instant_min(raft->lease.end, instant_add(raft->now, longest));
    raft->jeopardy_at = instant_add(raft->lease.end, SPAN_NS(-half_of_lease(raft).ns));
    leader_lease_renew(raft); /* a quorum of one keeps its endless lease */
}

bool leader_lease_is_covered(struct raft *raft)
{
    instant covered = {quorum_value(raft, covered_until)};

    return !raft->lease.held || !instant_before(covered, raft->lease.end) ||
           RAFT_MUTANT(JOINT_LEFT_EARLY);
}

/* A step that comes late means that this process was stopped or stalled; the loss then has another
 * reason than a group that does not reply. */
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

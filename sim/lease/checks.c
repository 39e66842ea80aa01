/* The rules that must hold after every event. A check fails when:
 *
 *   two-leaders       is_leader() is true in two processes at one instant
 *   epoch-order       a leadership is acquired with an epoch not above all before it
 *   outlives-lock     a lease may last longer than the lock that was granted for it
 *   overdue           a leader plans no step by the end of its lease
 *   demoted-early     a leadership "expires" before the end that was published
 *   kept              a process does not give back a lock that it does not want, or may still get
 *   unheard           a process does not check a notice of a later leadership
 *   events-disagree   a leadership is acquired or lost twice, or the events contradict the lease
 *   unwanted          a process that may not lead leads, or one acquires a lease that is over
 *   storm             too many commands are sent, or events scheduled, at once
 *
 * play.c has the checks of the phase without faults: no-leader, unsteady, slow-takeover,
 * slow-handover.
 *
 * A lease begins with a step of its holder and ends by its clock. Of two leases that overlap, the
 * later one begins within the other. So it is enough to look for a second leader after each event.
 */
#include "sim/lease/checks.h"

#include "sim/lease/leading.h"
#include "sim/lease/trace.h"

enum { PPM = 1000000, ROUNDING_NS = 100 };

void contest_check_leaders(struct contest *contest)
{
    const struct contender *first = NULL;

    for (size_t i = 0; i < contest->profile.contenders; i++) {
        const struct contender *who = &contest->contenders[i];
        if (!contender_leads(contest, who)) {
            continue;
        }
        if (first) {
            contest_violated(contest, "two-leaders",
                             "c%u in epoch %llu and c%u in epoch %llu, each under its lease",
                             first->number, (unsigned long long)first->update.epoch, who->number,
                             (unsigned long long)who->update.epoch);
        }
        first = who;
    }
}

/* Without a cause, a contender asks neither again within 10 ms nor twice in an interval all the
 * time. */
void contest_check_asked(struct contest *contest, struct contender *who)
{
    const struct lease_settings *s = &who->settings;
    int64_t *oldest = &who->asked_at[who->asks % CONTEST_ASKS_KEPT];
    int64_t each = SPAN_MS(10).ns;

    each = each < s->renew_interval.ns / 2 ? each : s->renew_interval.ns / 2;
    each = each < s->check_interval.ns / 2 ? each : s->check_interval.ns / 2;
    if (who->asks >= CONTEST_ASKS_KEPT && contest->now - *oldest < CONTEST_ASKS_KEPT / 4 * each) {
        contest_violated(contest, "storm", "c%u asks %d times in %.3f ms", who->number,
                         CONTEST_ASKS_KEPT, (double)(contest->now - *oldest) / 1e6);
    }
    *oldest = contest->now;
    who->asks++;
}

/* Remembers, by true time, until when a granted lock surely lives: for its lifetime on the fastest
 * allowed clock, counted from the request. */
void contest_check_answered(struct contest *contest, struct contender *who,
                            const struct lease_input *reply)
{
    int64_t fast_ppm = PPM + contest->profile.settings.clock_drift_ppm;
    int64_t until = who->sent_at[reply->reply.request % CONTEST_REQUESTS_KEPT] +
                    (int64_t)((__int128)who->settings.lease.ns * PPM / fast_ppm);

    if (reply->reply.outcome != LEASE_GRANTED) {
        return;
    }
    if (who->covered_epoch < reply->reply.epoch ||
        (who->covered_epoch == reply->reply.epoch && who->covered_until < until)) {
        who->covered_until = until;
        who->covered_epoch = reply->reply.epoch;
    }
}

static void check_lease(struct contest *contest, const struct contender *who)
{
    const struct lease_update *is = &who->update;
    int64_t end = drift_true(&who->clock, is->end);

    if (is->deadline.ns > is->end.ns) {
        contest_violated(contest, "overdue", "c%u leads until %lld, and looks again at %lld",
                         who->number, (long long)is->end.ns, (long long)is->deadline.ns);
    }
    if (!contest->options.breaks_drift &&
        (who->covered_epoch != is->epoch || end > who->covered_until + ROUNDING_NS)) {
        contest_violated(contest, "outlives-lock",
                         "c%u leads in epoch %llu for %.3f ms more, the lock may end in %.3f ms",
                         who->number, (unsigned long long)is->epoch,
                         (double)(end - contest->now) / 1e6,
                         (double)(who->covered_until - contest->now) / 1e6);
    }
}

static void check_event(struct contest *contest, struct contender *who,
                        const struct lease_update *before, const struct lease_event *event)
{
    instant now = drift_local(&who->clock, contest->now);

    if (event->type == LEASE_EV_ACQUIRED) {
        if (who->leads) {
            contest_violated(contest, "events-disagree", "c%u acquires what it has", who->number);
        }
        if (event->epoch <= contest->highest_epoch) {
            contest_violated(contest, "epoch-order", "c%u acquires epoch %llu after %llu",
                             who->number, (unsigned long long)event->epoch,
                             (unsigned long long)contest->highest_epoch);
        }
        if (!who->update.held) {
            contest_violated(contest, "unwanted", "c%u acquires epoch %llu when it is over",
                             who->number, (unsigned long long)event->epoch);
        }
        contest->highest_epoch = event->epoch;
        who->leads = true;
    } else if (event->type == LEASE_EV_LOST) {
        if (!who->leads) {
            contest_violated(contest, "events-disagree", "c%u loses what it has not", who->number);
        }
        if (event->loss == LEASE_LOSS_EXPIRED && instant_before(now, before->end)) {
            contest_violated(contest, "demoted-early",
                             "c%u is demoted %.3f ms before the end of its lease", who->number,
                             (double)instant_since(before->end, now).ns / 1e6);
        }
        who->leads = false;
    }
}

static bool sends(const struct lease_update *update, enum lease_command_type type)
{
    for (uint32_t i = 0; i < update->command_count; i++) {
        if (update->commands[i].type == type) {
            return true;
        }
    }
    return false;
}

/* The rules for a process that does not want the lock. */
static void check_unwanted(struct contest *contest, const struct contender *who,
                           const struct lease_input *input, const struct lease *had)
{
    const struct lease_update *is = &who->update;
    bool is_granted = input->type == LEASE_IN_REPLY && input->reply.outcome == LEASE_GRANTED &&
                      !is->held && (!had->is_waiting || input->reply.request == had->asked_request);
    bool may_be_granted = input->type == LEASE_IN_LEAVE && had->is_waiting &&
                          who->is_asking_for_it && !who->is_cordoned && who->lease.is_up;
    bool has_resigned = input->type == LEASE_IN_RESIGN && had->held;
    bool asks = sends(is, LEASE_TAKE) || sends(is, LEASE_RENEW);

    if ((is_granted || may_be_granted) && !who->lease.is_waiting && !sends(is, LEASE_RELEASE)) {
        contest_violated(contest, "kept", "c%u does not give back what it is or may be granted",
                         who->number);
    }
    if (asks && (who->is_cordoned || who->is_leaving || has_resigned)) {
        contest_violated(contest, "unwanted", "c%u asks for the lock, and may not have it now",
                         who->number);
    }
}

/* If an assumption of the proof has failed, two processes lead until then. */
static void check_heard(struct contest *contest, const struct contender *who,
                        const struct lease_input *input, const struct lease *had)
{
    const struct lease *lease = &who->lease;

    if (input->type == LEASE_IN_TAKEN && input->epoch > had->highest && !had->is_waiting &&
        lease->is_up && !lease->has_left && !lease->is_waiting) {
        contest_violated(contest, "unheard", "c%u hears of epoch %llu, and does not ask",
                         who->number, (unsigned long long)input->epoch);
    }
}

void contest_check_step(struct contest *contest, struct contender *who,
                        const struct lease_update *before, const struct lease *had,
                        const struct lease_input *input)
{
    const struct lease_update *is = &who->update;

    if (input->type == LEASE_IN_ELIGIBLE) {
        who->is_cordoned = !input->eligible;
    }
    for (uint32_t i = 0; i < is->event_count; i++) {
        check_event(contest, who, before, &is->events[i]);
    }
    if (who->leads != is->held) {
        contest_violated(contest, "events-disagree", "c%u has told that it %s", who->number,
                         who->leads ? "leads, and does not" : "does not lead, and does");
    }
    if (is->command_count > LEASE_COMMANDS_MAX) {
        contest_violated(contest, "storm", "c%u sends %u commands at once", who->number,
                         is->command_count);
    }
    if (is->held && (who->is_cordoned || who->is_leaving)) {
        contest_violated(contest, "unwanted", "c%u leads, and may not", who->number);
    }
    check_unwanted(contest, who, input, had);
    check_heard(contest, who, input, had);
    if (is->held) {
        check_lease(contest, who);
    }
}

#include "lease/lease.h"

#include "base/invariant.h"
#include "lease/mutants.h"

#include <string.h>

enum {
    PPM = 1000000,
    RETRY_MIN_MS = 20,
    RETRY_DOUBLINGS = 6,
    ENDLESS_DOUBLINGS = 20,
    RESIGNED_PAUSE_MS = 500
};

#define MS(value) ((double)(value).ns / 1e6)

void lease_settings_default(struct lease_settings *ret)
{
    *ret = (struct lease_settings){
        .lease = SPAN_S(30),
        .renew_interval = SPAN_S(10),
        .check_interval = SPAN_S(5),
        .answer_timeout = SPAN_S(5),
        .spread_each = SPAN_US(100), /* about what a store needs for one command */
        .spread_max = SPAN_S(2),
        .clock_drift_ppm = 10000,
    };
}

static span shorten(const struct lease_settings *settings, span granted)
{
    int64_t rho = LEASE_MUTANT(NO_DRIFT_FACTOR) ? 0 : settings->clock_drift_ppm;
    /* Quotient and rest apart, so that no product overflows. Rounding down is safe. */
    int64_t whole = granted.ns / (PPM + rho);
    int64_t rest = granted.ns % (PPM + rho);
    return SPAN_NS(whole * (PPM - rho) + rest * (PPM - rho) / (PPM + rho));
}

int lease_settings_check(const struct lease_settings *s, struct baton_error *reterr)
{
    if (s->clock_drift_ppm >= PPM) {
        return error_set(reterr, BATON_EUNSAFE, "clock drift %u ppm: must be below 1000000",
                         s->clock_drift_ppm);
    }
    if (s->lease.ns < SPAN_MS(1).ns || s->lease.ns > SPAN_S(LEASE_MAX_S).ns ||
        s->renew_interval.ns <= 0 || s->check_interval.ns <= 0 || s->answer_timeout.ns <= 0 ||
        s->spread_each.ns < 0 || s->spread_max.ns < 0) {
        return error_set(reterr, BATON_EINVAL,
                         "lease %g ms, renew interval %g ms, check interval %g ms, answer timeout "
                         "%g ms: each must be above 0, the lease from 1 ms to a day",
                         MS(s->lease), MS(s->renew_interval), MS(s->check_interval),
                         MS(s->answer_timeout));
    }
    if (2 * s->renew_interval.ns > shorten(s, s->lease).ns) {
        span longest = SPAN_US(shorten(s, s->lease).ns / 2 / 1000); /* microseconds, to be read */
        return error_set(reterr, BATON_EINVAL,
                         "heartbeat interval %g ms: at most %g ms, half of the lease of %g ms less "
                         "the clocks' drift, or one lost renewal would end every leadership; "
                         "shorten the heartbeat interval, or lengthen the lease",
                         MS(s->renew_interval), MS(longest), MS(s->lease));
    }
    return BATON_OK;
}

void lease_init(struct lease *lease, bool eligible, uint64_t highest)
{
    *lease = (struct lease){.eligible = eligible,
                            .contenders = 1,
                            .end = INSTANT_PAST,
                            .next = INSTANT_NEVER,
                            .highest = highest};
}

/* The arguments of a step. */
struct step {
    struct lease *lease;
    const struct lease_settings *settings;
    instant now;
    uint64_t random;
    struct lease_update *update;
};

/* ---- The output of a step -------------------------------------------------------------------- */

static struct lease_event *add_event(struct step *step, enum lease_event_type type)
{
    struct lease_event *event = &step->update->events[step->update->event_count];

    INVARIANT(step->update->event_count < LEASE_EVENTS_MAX);
    step->update->event_count++;
    *event = (struct lease_event){.type = type, .epoch = step->lease->epoch};
    return event;
}

static void send(struct step *step, enum lease_command_type type, uint64_t epoch)
{
    struct lease *lease = step->lease;
    struct lease_command *command = &step->update->commands[step->update->command_count];

    INVARIANT(step->update->command_count < LEASE_COMMANDS_MAX);
    step->update->command_count++;
    *command = (struct lease_command){.type = type, .request = ++lease->request, .epoch = epoch};
    if (type == LEASE_RELEASE) {
        /* It may arrive after a later command, so this epoch is never taken again. */
        lease->highest = epoch > lease->highest ? epoch : lease->highest;
    } else {
        lease->is_waiting = true;
        lease->asks_again = false;
        lease->asked_request = command->request;
        lease->sent = step->now;
    }
}

static void see_holder(struct step *step, uint64_t epoch)
{
    struct lease *lease = step->lease;

    if (epoch > lease->highest && !LEASE_MUTANT(SEEN_EPOCH_FORGOTTEN)) {
        lease->highest = epoch;
    }
    if (lease->holder != epoch) {
        lease->holder = epoch;
        add_event(step, LEASE_EV_HOLDER)->epoch = epoch;
    }
}

static void lose(struct step *step, enum lease_loss loss)
{
    step->lease->held = false;
    step->lease->end = INSTANT_PAST;
    add_event(step, LEASE_EV_LOST)->loss = loss;
}

/* ---- When to ask again ----------------------------------------------------------------------- */

/* A random wait within a window that grows with the number of contenders. A few contenders need no
 * window: a store serves them one after another quickly, and timers are no finer. */
static span spread(const struct step *step)
{
    const struct lease_settings *settings = step->settings;
    int64_t others = step->lease->contenders > 1 ? (int64_t)step->lease->contenders - 1 : 0;
    bool is_most = others > 0 && settings->spread_each.ns > settings->spread_max.ns / others;
    int64_t window = is_most ? settings->spread_max.ns : others * settings->spread_each.ns;

    return SPAN_NS(window < SPAN_MS(1).ns ? 0 : step->random % (uint64_t)(window + 1));
}

static void ask_at(struct step *step, instant at)
{
    step->lease->next = at;
}

static void ask_within(struct step *step, span wait)
{
    instant latest = instant_add(step->now, step->settings->check_interval);

    ask_at(step, instant_min(instant_add(instant_add(step->now, wait), spread(step)), latest));
}

static void ask_after_failure(struct step *step)
{
    struct lease *lease = step->lease;
    uint32_t doublings = lease->failures < RETRY_DOUBLINGS ? lease->failures : RETRY_DOUBLINGS;
    int64_t pause = SPAN_MS(RETRY_MIN_MS).ns << doublings;

    lease->failures++;
    if (pause > step->settings->renew_interval.ns) {
        pause = step->settings->renew_interval.ns;
    }
    pause = pause / 2 + (int64_t)(step->random % (uint64_t)(pause / 2 + 1));
    ask_at(step, instant_add(step->now, SPAN_NS(pause)));
}

/* When no lifetime is left, the lock ends at this moment or was set without a lifetime. So the
 * follower asks again at once, and then less and less often. */
static span until_its_end(struct step *step, span left)
{
    struct lease *lease = step->lease;

    if (left.ns > 0 || LEASE_MUTANT(ENDLESS_IS_OVER)) {
        lease->endless = 0;
        return left;
    }
    lease->endless += lease->endless < ENDLESS_DOUBLINGS;
    return SPAN_NS(SPAN_MS(1).ns << (lease->endless - 1));
}

/* ---- Replies --------------------------------------------------------------------------------- */

static void give_back(struct step *step, uint64_t epoch)
{
    send(step, LEASE_RELEASE, epoch);
    ask_after_failure(step);
}

static void take_grant(struct step *step, uint64_t epoch)
{
    struct lease *lease = step->lease;
    instant counted_from = LEASE_MUTANT(COUNTED_FROM_ANSWER) ? step->now : lease->sent;
    instant end = instant_add(counted_from, shorten(step->settings, step->settings->lease));
    bool is_unwanted =
        (!lease->eligible || lease->has_left) && !LEASE_MUTANT(UNWANTED_GRANT_IS_TAKEN);
    bool is_late = !instant_before(step->now, end) && !LEASE_MUTANT(LATE_GRANT_IS_TAKEN);
    bool is_new = !lease->held || lease->epoch != epoch;

    if (is_unwanted || is_late) {
        give_back(step, epoch);
        return;
    }
    if (is_new && epoch <= lease->highest && !LEASE_MUTANT(RELEASED_IS_TAKEN_AGAIN)) {
        add_event(step, LEASE_EV_STALE_EPOCH)->epoch = epoch;
        give_back(step, epoch);
        return;
    }
    if (lease->held && is_new) {
        lose(step, LEASE_LOSS_SUPERSEDED); /* the lock had been lost, and was taken anew */
    }
    lease->failures = 0;
    lease->endless = 0;
    lease->held = true;
    lease->epoch = epoch;
    lease->end = instant_max(end, lease->end);
    lease->jeopardy_reported = false;
    ask_at(step, lease->asks_again && !is_new
                     ? step->now
                     : instant_add(lease->sent, step->settings->renew_interval));
    lease->asks_again = false;
    if (is_new) {
        add_event(step, LEASE_EV_ACQUIRED);
        see_holder(step, epoch);
    }
}

/* The reply to a command that was given up. A lock that the command got is given back, unless
 * another command is under way: the store knows our id, so the reply to that one may grant the same
 * lock, and to give it back would make that reply wrong. */
static void take_late_reply(struct step *step, const struct lease_input *input)
{
    const struct lease *lease = step->lease;

    if (input->reply.outcome == LEASE_GRANTED && !lease->held && !lease->is_waiting &&
        !LEASE_MUTANT(LATE_GRANT_KEPT)) {
        send(step, LEASE_RELEASE, input->reply.epoch);
    }
}

static void take_reply(struct step *step, const struct lease_input *input)
{
    struct lease *lease = step->lease;

    if (!lease->is_waiting ||
        (input->reply.request != lease->asked_request && !LEASE_MUTANT(ANY_ANSWER_COUNTS))) {
        take_late_reply(step, input);
        return;
    }
    lease->is_waiting = false;
    if (input->reply.outcome == LEASE_GRANTED) {
        take_grant(step, input->reply.epoch);
        return;
    }
    if (input->reply.outcome == LEASE_NO_ANSWER) {
        if (lease->held && LEASE_MUTANT(ERROR_DEMOTES)) {
            lose(step, LEASE_LOSS_EXPIRED);
        } else if (lease->held && LEASE_MUTANT(NO_END)) {
            lease->end = instant_add(step->now, step->settings->lease);
        }
        ask_after_failure(step); /* an error ends no leadership: the lease ends by the clock */
        return;
    }
    lease->failures = 0;
    if (lease->held) {
        lose(step, LEASE_LOSS_SUPERSEDED);
    }
    if (input->reply.outcome == LEASE_HELD) {
        see_holder(step, input->reply.epoch > 0 ? input->reply.epoch : 1);
        ask_within(step, lease->asks_again              ? SPAN_NS(0)
                         : LEASE_MUTANT(END_NOT_LEARNT) ? step->settings->check_interval
                                                        : until_its_end(step, input->reply.left));
        lease->asks_again = false;
    } else {
        see_holder(step, 0);
        ask_within(step, input->reply.outcome == LEASE_NOT_YET ? input->reply.left
                         : lease->eligible                     ? SPAN_NS(0)
                                                               : step->settings->check_interval);
    }
}

/* ---- The other inputs ------------------------------------------------------------------------ */

/* Void first: the release leaves with the update that publishes the end. */
static void give_up(struct step *step)
{
    struct lease *lease = step->lease;

    if (lease->held && LEASE_MUTANT(RELEASE_BEFORE_VOID)) {
        send(step, LEASE_RELEASE, lease->epoch);
    } else if (lease->held) {
        lose(step, LEASE_LOSS_RESIGNED);
        see_holder(step, 0);
        send(step, LEASE_RELEASE, lease->epoch);
    }
    if (!LEASE_MUTANT(UNWANTED_GRANT_IS_TAKEN)) {
        lease->is_waiting = false; /* a grant in the network is given back when it arrives */
    }
}

static void resign(struct step *step)
{
    if (step->lease->held) {
        give_up(step);
        if (LEASE_MUTANT(RESIGNED_ASKS_AT_ONCE)) {
            ask_at(step, step->now);
            return;
        }
        /* The release wakes the others; without others, this process leads again after the pause.
         */
        ask_at(step, instant_add(step->now, SPAN_MS(RESIGNED_PAUSE_MS)));
        if (step->lease->contenders > 1) {
            step->lease->next = instant_add(step->lease->next, step->settings->check_interval);
        }
    }
}

/* A process that leaves may be gone when the reply to its last command arrives. */
static void leave(struct step *step)
{
    struct lease *lease = step->lease;
    bool may_be_granted = lease->is_waiting && !lease->held && lease->eligible;

    give_up(step);
    lease->has_left = true;
    if (may_be_granted && !LEASE_MUTANT(LEAVES_A_LOCK_BEHIND)) {
        send(step, LEASE_RELEASE, LEASE_EPOCH_UNKNOWN);
    }
}

static void take_input(struct step *step, const struct lease_input *input)
{
    struct lease *lease = step->lease;

    switch (input->type) {
    case LEASE_IN_TICK:
        break;
    case LEASE_IN_REPLY:
        take_reply(step, input);
        break;
    case LEASE_IN_RELEASED:
        if (LEASE_MUTANT(RELEASE_NOT_HEARD)) {
            break;
        }
        lease->asks_again = lease->is_waiting && !LEASE_MUTANT(CROSSED_RELEASE_FORGOTTEN);
        if (!lease->held && !lease->is_waiting) {
            see_holder(step, 0);
            ask_at(step, instant_add(instant_add(step->now, input->wait), spread(step)));
        }
        break;
    case LEASE_IN_TAKEN:
        if (LEASE_MUTANT(TAKEN_NOT_HEARD)) {
            break;
        }
        /* The notice may be late, even about an epoch of ours that was given up since. */
        if (input->epoch > lease->highest && !lease->is_waiting) {
            ask_at(step, step->now); /* ask for the holder, or whether the lock is still ours */
        } else if (input->epoch > lease->highest && lease->held) {
            lease->asks_again = true;
        }
        break;
    case LEASE_IN_UP:
        lease->is_up = true;
        lease->failures = 0;
        ask_at(step, step->now);
        break;
    case LEASE_IN_DOWN:
        lease->is_up = false;
        lease->is_waiting = false;
        break;
    case LEASE_IN_ELIGIBLE:
        lease->eligible = input->eligible;
        if (!lease->eligible) {
            give_up(step);
        }
        ask_at(step, step->now);
        break;
    case LEASE_IN_RESIGN:
        resign(step);
        break;
    case LEASE_IN_LEAVE:
        leave(step);
        break;
    case LEASE_IN_CONTENDERS:
        lease->contenders = input->contenders;
        break;
    }
}

/* ---- Time ------------------------------------------------------------------------------------ */

static instant jeopardy_at(const struct step *step)
{
    return instant_add(step->lease->end,
                       SPAN_NS(-shorten(step->settings, step->settings->lease).ns / 3));
}

static void look_at_the_clock(struct step *step)
{
    struct lease *lease = step->lease;

    if (lease->held && !instant_before(step->now, lease->end)) {
        lose(step, LEASE_LOSS_EXPIRED);
        see_holder(step, 0);
        ask_at(step, step->now);
    } else if (lease->held && !lease->jeopardy_reported &&
               !instant_before(step->now, jeopardy_at(step))) {
        lease->jeopardy_reported = true;
        add_event(step, LEASE_EV_JEOPARDY)->left = instant_since(lease->end, step->now);
    }
    if (lease->is_waiting && !LEASE_MUTANT(WAITS_FOR_EVER) &&
        !instant_before(step->now, instant_add(lease->sent, step->settings->answer_timeout))) {
        lease->is_waiting = false;
        ask_after_failure(step);
    }
}

static void ask(struct step *step)
{
    struct lease *lease = step->lease;

    if (!lease->is_up || (lease->has_left && !LEASE_MUTANT(LEFT_AND_ASKS)) || lease->is_waiting ||
        instant_before(step->now, lease->next)) {
        return;
    }
    if (lease->held) {
        send(step, LEASE_RENEW, lease->epoch);
    } else if (lease->eligible || LEASE_MUTANT(CORDONED_TAKES)) {
        send(step, LEASE_TAKE, LEASE_MUTANT(RELEASED_IS_TAKEN_AGAIN) ? 0 : lease->highest);
    } else {
        send(step, LEASE_LOOK, 0);
    }
}

static instant deadline(const struct step *step)
{
    const struct lease *lease = step->lease;
    instant at = INSTANT_NEVER;

    if (lease->held) {
        at = instant_min(at, lease->jeopardy_reported ? lease->end : jeopardy_at(step));
    }
    if (lease->is_waiting && LEASE_MUTANT(WAITS_FOR_EVER)) {
        return at;
    }
    if (lease->is_waiting) {
        at = instant_min(at, instant_add(lease->sent, step->settings->answer_timeout));
    } else if (lease->is_up && !lease->has_left) {
        at = instant_min(at, lease->next);
    }
    return at;
}

void lease_step(struct lease *lease, const struct lease_settings *settings,
                const struct lease_input *input, instant now, uint64_t random,
                struct lease_update *ret)
{
    struct step step = {
        .lease = lease, .settings = settings, .now = now, .random = random, .update = ret};

    ret->command_count = 0;
    ret->event_count = 0;
    take_input(&step, input);
    look_at_the_clock(&step);
    ask(&step);
    ret->held = lease->held;
    ret->end = lease->held ? lease->end : INSTANT_PAST;
    ret->epoch = lease->epoch;
    ret->deadline = deadline(&step);
}

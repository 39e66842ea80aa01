/* Leadership goes to another: drain first, void next, hand over then.
 *
 *   baton_resign ──────────┐
 *   baton_cordon ──────────┼─▶ BATON_EVENT_DRAIN to all ─▶ all returned, or time is up ─▶ provider
 *   provider's DRAIN event ┘                                                                 │
 *   baton_resign, baton_cordon return ◀── BATON_EVENT_LOST, or nobody took over in time ◀────┘
 */
#include "api/internal.h"

#include <stdio.h>
#include <string.h>

/* For the round trips, after the draining, however much time there is: until then nothing can be
 * written, in providers that wait for the heir. */
enum { HAND_OVER_MS = 5000 };

/* How the draining ends. */
enum hand_over {
    HAND_OVER_RESIGN,
    HAND_OVER_CORDON,
    HAND_OVER_WANTED, /* by the group: the provider waits for the word */
};

struct resignation {
    struct call base;
    struct baton_election *election;
    enum hand_over how;
    char to[BATON_NAME_MAX]; /* "": the best placed */
    instant deadline;        /* of draining and handing over */
    uv_timer_t timer;
    bool has_begun;   /* the provider was asked */
    bool is_draining; /* under the lock */
};

static void on_timer_closed(uv_handle_t *timer)
{
    call_unref(timer->data);
}

static void end(struct resignation *resignation, int code, const struct baton_error *error)
{
    struct baton *baton = resignation->base.baton;

    lock(baton);
    resignation->election->resignation = NULL;
    resignation->is_draining = false;
    unlock(baton);
    uv_close((uv_handle_t *)&resignation->timer, on_timer_closed);
    call_finish(&resignation->base, code, error);
}

static int ask_provider(struct resignation *resignation, struct baton_error *reterr)
{
    struct provider_election *provider = resignation->election->provider;
    instant limit = instant_add(clock_now(), SPAN_MS(HAND_OVER_MS));

    switch (resignation->how) {
    case HAND_OVER_RESIGN:
        return provider->ops->resign(provider, resignation->to[0] ? resignation->to : NULL,
                                     instant_min(resignation->deadline, limit), reterr);
    case HAND_OVER_CORDON:
        return provider->ops->set_eligible(provider, false, reterr);
    case HAND_OVER_WANTED:
        provider->ops->drained(provider);
        break;
    }
    return BATON_OK;
}

static void hand_over(struct resignation *resignation)
{
    struct baton_election *election = resignation->election;
    struct baton_error error = {0};
    int code;

    if (resignation->has_begun) {
        return;
    }
    resignation->has_begun = true;
    (void)uv_timer_stop(&resignation->timer);
    code = ask_provider(resignation, &error);
    if (code != BATON_OK && election->resignation == resignation) {
        end(resignation, code, &error);
    }
}

static void on_drain_timeout(uv_timer_t *timer)
{
    hand_over(timer->data);
}

void handover_drained_locked(struct baton_election *election)
{
    if (election->resignation && election->resignation->is_draining) {
        election->resignation->is_draining = false;
        call_requeue_locked(&election->resignation->base);
    }
}

/* This process stays in office. */
static bool has_failed(const struct resignation *resignation, const struct baton_event *event)
{
    return event->type == BATON_EVENT_ERROR && event->error.code == BATON_ETIMEDOUT &&
           (resignation->how == HAND_OVER_WANTED || (resignation->has_begun && resignation->to[0]));
}

static span left_of(const struct resignation *resignation)
{
    span lease = {baton_lease_remaining(resignation->election)};
    span wanted = instant_since(resignation->deadline, clock_now());

    return wanted.ns < 0 ? (span){0} : wanted.ns < lease.ns ? wanted : lease;
}

static void tell_drain(struct resignation *resignation)
{
    struct baton_election *election = resignation->election;
    const struct baton_event event = {.type = BATON_EVENT_DRAIN,
                                      .epoch = baton_epoch(election),
                                      .lease_left_ns = left_of(resignation).ns};

    lock(resignation->base.baton);
    resignation->is_draining = true;
    unlock(resignation->base.baton);
    listeners_tell(election, &event);
}

/* A leadership may have begun, and be asked to end, before its news has come through the loop:
 * those who listen hear of it first. */
static void drain(struct resignation *resignation)
{
    struct baton_election *election = resignation->election;

    (void)uv_timer_init(&resignation->base.baton->loop, &resignation->timer);
    resignation->timer.data = resignation;
    (void)uv_timer_start(&resignation->timer, on_drain_timeout,
                         (uint64_t)(left_of(resignation).ns / 1000000), 0);
    lock(resignation->base.baton);
    resignation->base.references++; /* the timer's */
    election->resignation = resignation;
    unlock(resignation->base.baton);
    if (election->acquired_epoch == baton_epoch(election)) {
        tell_drain(resignation);
    }
}

void handover_acquired(struct baton_election *election)
{
    struct resignation *resignation = election->resignation;

    if (resignation && !resignation->has_begun && !resignation->is_draining) {
        tell_drain(resignation);
    }
}

/* Nothing stops for a member that could not take over. */
static void drain_for(struct resignation *resignation)
{
    struct provider_election *provider = resignation->election->provider;
    struct baton_error error = {0};
    int code = resignation->to[0] ? provider->ops->check_heir(provider, resignation->to, &error)
                                  : BATON_OK;

    if (code == BATON_OK) {
        drain(resignation);
    } else {
        call_finish(&resignation->base, code, &error);
    }
}

static void cordon(struct resignation *resignation)
{
    struct baton_error error = {0};
    int code = ask_provider(resignation, &error);

    call_finish(&resignation->base, code, &error);
}

static void run_resign(struct call *base)
{
    struct resignation *resignation = (struct resignation *)base;
    struct baton_election *election = resignation->election;
    struct baton_error error;

    if (election->resignation == resignation) {
        hand_over(resignation); /* all have drained */
    } else if (!election->provider) {
        call_finish(base, BATON_ECLOSED, NULL);
    } else if (election->resignation) {
        (void)error_set(&error, BATON_EBUSY, "election \"%s\": a hand-over is under way",
                        election->name);
        call_finish(base, BATON_EBUSY, &error);
    } else if (baton_is_leader(election)) {
        drain_for(resignation);
    } else if (resignation->how == HAND_OVER_CORDON) {
        cordon(resignation);
    } else {
        (void)error_set(&error, BATON_ENOTLEADER, "election \"%s\": this process does not lead it",
                        election->name);
        call_finish(base, BATON_ENOTLEADER, &error);
    }
}

static struct resignation *resignation_new(struct baton_election *election, enum hand_over how,
                                           instant deadline)
{
    struct resignation *resignation = call_new(election->baton, sizeof(*resignation), run_resign);

    if (resignation) {
        resignation->election = election;
        resignation->how = how;
        resignation->deadline = deadline;
    }
    return resignation;
}

/* ---- What the provider tells ----------------------------------------------------------------- */

/* A call that nobody waits for. */
static void drain_for_the_group(struct baton_election *election, const struct baton_event *event)
{
    instant deadline = instant_add(clock_now(), SPAN_NS(event->lease_left_ns));
    struct resignation *resignation;

    if (election->resignation) {
        return; /* it hands over anyway */
    }
    resignation = resignation_new(election, HAND_OVER_WANTED, deadline);
    if (resignation) {
        drain(resignation);
    } else {
        listeners_tell(election, event); /* the provider will not be told when they have returned */
    }
}

void handover_event(struct baton_election *election, const struct baton_event *event)
{
    struct resignation *resignation = election->resignation;

    if (event->type == BATON_EVENT_DRAIN) {
        drain_for_the_group(election, event);
        return;
    }
    if (!resignation) {
        return;
    }
    if (event->type == BATON_EVENT_LOST && resignation->how == HAND_OVER_CORDON &&
        !resignation->has_begun) {
        hand_over(resignation); /* lost meanwhile, and not to be won again */
    }
    if (election->resignation != resignation) {
        return;
    }
    if (event->type == BATON_EVENT_LOST) {
        end(resignation, BATON_OK, NULL);
    } else if (event->type == BATON_EVENT_STOPPED) {
        end(resignation, BATON_ECLOSED, NULL);
    } else if (has_failed(resignation, event)) {
        end(resignation, BATON_ETIMEDOUT, &event->error);
    }
}

/* ---- What the program asks ------------------------------------------------------------------- */

static int perform(struct baton_election *election, enum hand_over how, const char *to,
                   int64_t timeout_ms, struct baton_error *reterr)
{
    struct resignation *resignation;
    int code = check_owner(election->baton, reterr);

    if (code != BATON_OK) {
        return code;
    }
    resignation = resignation_new(election, how, call_deadline(timeout_ms));
    if (!resignation) {
        return error_set(reterr, BATON_ENOMEM, "election \"%s\": out of memory", election->name);
    }
    (void)snprintf(resignation->to, sizeof(resignation->to), "%s", to);
    resignation->base.dispatches = true;
    code = call_perform(&resignation->base, call_and_a_turn(timeout_ms), BATON_OK, reterr);
    call_unref(&resignation->base);
    return code;
}

int baton_resign(struct baton_election *election, int64_t timeout_ms, struct baton_error *reterr)
{
    return perform(election, HAND_OVER_RESIGN, "", timeout_ms, reterr);
}

int baton_pass(struct baton_election *election, const char *to, int64_t timeout_ms,
               struct baton_error *reterr)
{
    if (!to[0] || strlen(to) >= BATON_NAME_MAX) {
        return error_set(reterr, BATON_EINVAL, "member \"%.40s\": must have 1 to %d bytes", to,
                         BATON_NAME_MAX - 1);
    }
    return perform(election, HAND_OVER_RESIGN, to, timeout_ms, reterr);
}

int baton_cordon(struct baton_election *election, struct baton_error *reterr)
{
    return perform(election, HAND_OVER_CORDON, "", BATON_TIMEOUT_DEFAULT, reterr);
}

struct uncordon_call {
    struct call base;
    struct baton_election *election;
};

static void run_uncordon(struct call *base)
{
    struct provider_election *provider = ((struct uncordon_call *)base)->election->provider;
    struct baton_error error = {0};
    int code = BATON_ECLOSED;

    if (provider) {
        code = provider->ops->set_eligible(provider, true, &error);
    }
    call_finish(base, code, &error);
}

int baton_uncordon(struct baton_election *election, struct baton_error *reterr)
{
    struct uncordon_call *call;
    int code = check_owner(election->baton, reterr);

    if (code != BATON_OK) {
        return code;
    }
    call = call_new(election->baton, sizeof(*call), run_uncordon);
    if (!call) {
        return error_set(reterr, BATON_ENOMEM, "election \"%s\": out of memory", election->name);
    }
    call->election = election;
    code = call_perform(&call->base, BATON_TIMEOUT_DEFAULT, BATON_OK, reterr);
    call_unref(&call->base);
    return code;
}

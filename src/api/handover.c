/* Leadership goes to another: drain first, void next, hand over then.
 *
 *   baton_resign ─▶ BATON_EVENT_DRAIN to all ─▶ all returned, or time is up ─▶ provider's resign
 *                                                                                     │
 *   baton_resign returns ◀── BATON_EVENT_LOST, or the named one did not take over ◀───┘
 */
#include "api/internal.h"

#include <stdio.h>
#include <string.h>

enum { HAND_OVER_MS = 5000 }; /* for the round trips, after the draining */

struct resignation {
    struct call base;
    struct baton_election *election;
    char to[BATON_NAME_MAX]; /* "": the best placed */
    int64_t drain_ms;
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

static void hand_over(struct resignation *resignation)
{
    struct baton_election *election = resignation->election;
    instant deadline = instant_add(clock_now(), SPAN_MS(HAND_OVER_MS));
    struct baton_error error;
    int code;

    if (resignation->has_begun) {
        return;
    }
    resignation->has_begun = true;
    (void)uv_timer_stop(&resignation->timer);
    code = election->provider->ops->resign(
        election->provider, resignation->to[0] ? resignation->to : NULL, deadline, &error);
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

void handover_event(struct baton_election *election, const struct baton_event *event)
{
    struct resignation *resignation = election->resignation;

    if (!resignation) {
        return;
    }
    if (event->type == BATON_EVENT_LOST) {
        end(resignation, BATON_OK, NULL);
    } else if (event->type == BATON_EVENT_STOPPED) {
        end(resignation, BATON_ECLOSED, NULL);
    } else if (event->type == BATON_EVENT_ERROR && event->error.code == BATON_ETIMEDOUT &&
               resignation->has_begun && resignation->to[0]) {
        end(resignation, BATON_ETIMEDOUT, &event->error);
    }
}

static void drain(struct resignation *resignation)
{
    struct baton_election *election = resignation->election;
    int64_t left_ms = baton_lease_remaining(election) / 1000000;
    int64_t drain_ms = resignation->drain_ms < left_ms ? resignation->drain_ms : left_ms;
    struct baton_event event = {.type = BATON_EVENT_DRAIN,
                                .epoch = baton_epoch(election),
                                .lease_left_ns = drain_ms * 1000000};

    (void)uv_timer_init(&resignation->base.baton->loop, &resignation->timer);
    resignation->timer.data = resignation;
    (void)uv_timer_start(&resignation->timer, on_drain_timeout, (uint64_t)drain_ms, 0);
    lock(resignation->base.baton);
    resignation->base.references++; /* the timer's */
    resignation->is_draining = true;
    election->resignation = resignation;
    unlock(resignation->base.baton);
    listeners_tell(election, &event);
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
    } else if (!baton_is_leader(election)) {
        (void)error_set(&error, BATON_ENOTLEADER, "election \"%s\": this process does not lead it",
                        election->name);
        call_finish(base, BATON_ENOTLEADER, &error);
    } else if (election->resignation) {
        (void)error_set(&error, BATON_EBUSY, "election \"%s\": a hand-over is under way",
                        election->name);
        call_finish(base, BATON_EBUSY, &error);
    } else {
        drain(resignation);
    }
}

static int perform(struct baton_election *election, const char *to, int64_t timeout_ms,
                   struct baton_error *reterr)
{
    struct resignation *resignation;
    int64_t drain_ms = instant_since(call_deadline(timeout_ms), clock_now()).ns / 1000000;
    int code = check_owner(election->baton, reterr);

    if (code != BATON_OK) {
        return code;
    }
    resignation = call_new(election->baton, sizeof(*resignation), run_resign);
    if (!resignation) {
        return error_set(reterr, BATON_ENOMEM, "election \"%s\": out of memory", election->name);
    }
    resignation->election = election;
    resignation->drain_ms = drain_ms;
    (void)snprintf(resignation->to, sizeof(resignation->to), "%s", to ? to : "");
    code = call_perform(&resignation->base, drain_ms + 2 * (int64_t)HAND_OVER_MS, BATON_OK, reterr);
    call_unref(&resignation->base);
    return code;
}

int baton_resign(struct baton_election *election, int64_t timeout_ms, struct baton_error *reterr)
{
    return perform(election, NULL, timeout_ms, reterr);
}

int baton_pass(struct baton_election *election, const char *to, int64_t timeout_ms,
               struct baton_error *reterr)
{
    if (!to[0] || strlen(to) >= BATON_NAME_MAX) {
        return error_set(reterr, BATON_EINVAL, "member \"%.40s\": must have 1 to %d bytes", to,
                         BATON_NAME_MAX - 1);
    }
    return perform(election, to, timeout_ms, reterr);
}

/* ---- Cordon ---------------------------------------------------------------------------------- */

struct cordon_call {
    struct call base;
    struct baton_election *election;
    bool eligible;
};

static void run_cordon(struct call *base)
{
    struct cordon_call *call = (struct cordon_call *)base;
    struct provider_election *provider = call->election->provider;
    struct baton_error error = {0};
    int code = BATON_ECLOSED;

    if (provider) {
        code = provider->ops->set_eligible(provider, call->eligible, &error);
    }
    call_finish(base, code, &error);
}

static int set_eligible(struct baton_election *election, bool eligible, struct baton_error *reterr)
{
    struct cordon_call *call;
    int code = check_owner(election->baton, reterr);

    if (code != BATON_OK) {
        return code;
    }
    call = call_new(election->baton, sizeof(*call), run_cordon);
    if (!call) {
        return error_set(reterr, BATON_ENOMEM, "election \"%s\": out of memory", election->name);
    }
    call->election = election;
    call->eligible = eligible;
    code = call_perform(&call->base, BATON_TIMEOUT_DEFAULT, BATON_OK, reterr);
    call_unref(&call->base);
    return code;
}

int baton_cordon(struct baton_election *election, struct baton_error *reterr)
{
    return set_eligible(election, false, reterr);
}

int baton_uncordon(struct baton_election *election, struct baton_error *reterr)
{
    return set_eligible(election, true, reterr);
}

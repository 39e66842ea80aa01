#include "member/handover.h"

#include "member/handover_int.h"
#include "member/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The request's terms. */
struct terms {
    enum handover_kind kind;
    bool is_wanted; /* by the group: the provider waits for the end of the draining, and goes on */
    bool is_forced;
    char to[BATON_NAME_MAX]; /* "": the best placed */
    instant deadline;
    span limit;
    provider_done_cb done;
    void *userdata;
};

/* Ten thousand may begin at once: those that fail have their error elsewhere. */
struct handover {
    struct election *election;
    struct terms terms;
    uv_timer_t timer;
    instant drained_by; /* the draining's own deadline */
    bool is_announced;  /* observers have got BATON_EVENT_DRAIN */
    bool is_due;        /* its time is up */
    bool is_going;      /* the provider was asked */
    unsigned holds;
    int code;                  /* for `done` */
    struct baton_error *error; /* NULL: none, or no memory for it */
};

/* ---- The end --------------------------------------------------------------------------------- */

static void on_timer_closed(uv_handle_t *timer)
{
    free(timer->data);
}

void handover_reply(struct handover *handover)
{
    struct baton_error error = {0};

    if (!handover) {
        return;
    }
    if (handover->code != BATON_OK) {
        (void)error_set(&error, handover->code, "%s",
                        handover->error ? handover->error->message
                                        : baton_strerror(handover->code));
    }
    if (handover->terms.done) {
        handover->terms.done(handover->terms.userdata, handover->code, &error);
    }
    free(handover->error);
    uv_close((uv_handle_t *)&handover->timer, on_timer_closed);
}

static void note_outcome(struct handover *handover, int code, const struct baton_error *error)
{
    handover->code = code;
    if (code != BATON_OK && (handover->error = malloc(sizeof(*error)))) {
        *handover->error = *error;
    }
}

static struct handover *detach(struct handover *handover, int code, const struct baton_error *error)
{
    handover->election->handover = NULL;
    (void)uv_timer_stop(&handover->timer);
    note_outcome(handover, code, error);
    return handover;
}

static void give_up(struct handover *handover)
{
    struct election *election = handover->election;
    struct baton_event event = {.type = BATON_EVENT_ERROR, .at_ns = clock_now().ns};

    (void)error_set(&event.error, BATON_ETIMEDOUT,
                    "election \"%s\": the program did not stop in time; this process goes on "
                    "leading",
                    election->name);
    (void)detach(handover, BATON_ETIMEDOUT, &event.error);
    election_tell(election, &event);
    handover_reply(handover);
    election_catch_up(election);
}

/* ---- Handing over ---------------------------------------------------------------------------- */

static int set_cordoned(struct election *election, bool is_cordoned, struct baton_error *reterr)
{
    struct provider_election *provider = election->provider;
    int code = provider->ops->set_eligible(provider, !is_cordoned && !election->is_unable, reterr);

    if (code == BATON_OK) {
        election->is_cordoned = is_cordoned;
    }
    return code;
}

static int ask_provider(struct handover *handover, struct baton_error *reterr)
{
    struct provider_election *provider = handover->election->provider;
    instant deadline = handover->terms.deadline;

    if (handover->terms.is_wanted) {
        provider->ops->drained(provider);
        return BATON_OK;
    }
    if (handover->terms.kind == HANDOVER_CORDON) {
        return set_cordoned(handover->election, true, reterr);
    }
    if (handover->terms.limit.ns > 0) {
        deadline = instant_min(deadline, instant_add(clock_now(), handover->terms.limit));
    }
    return provider->ops->resign(provider, handover->terms.to[0] ? handover->terms.to : NULL,
                                 deadline, reterr);
}

/* The provider may report the loss before it returns; then the hand-over has been freed. */
static void go(struct handover *handover)
{
    struct election *election = handover->election;
    struct baton_error error = {0};
    int code;

    handover->is_going = true;
    (void)uv_timer_stop(&handover->timer);
    code = ask_provider(handover, &error);
    if (code != BATON_OK && election->handover == handover) {
        handover_reply(detach(handover, code, &error));
    }
}

/* ---- Draining -------------------------------------------------------------------------------- */

/* The lease is renewed while observers drain, but a forced hand-over must not depend on that. */
static span left_of(const struct handover *handover)
{
    span lease = election_lease_left(handover->election);
    span wanted = instant_since(handover->terms.deadline, clock_now());
    span left = handover->terms.is_forced && lease.ns < wanted.ns ? lease : wanted;

    if (!handover->terms.is_forced && handover->terms.deadline.ns == INSTANT_NEVER.ns) {
        return SPAN_NS(INT64_MAX);
    }
    return left.ns < 0 ? SPAN_NS(0) : left;
}

static void announce(struct handover *handover)
{
    const struct baton_event event = {.type = BATON_EVENT_DRAIN,
                                      .at_ns = clock_now().ns,
                                      .epoch = lease_cell_epoch(handover->election->cell),
                                      .lease_left_ns = left_of(handover).ns};

    handover->is_announced = true;
    election_tell(handover->election, &event);
}

static bool may_go(const struct handover *handover)
{
    bool is_free = handover->is_announced && handover->holds == 0;

    return !handover->is_going && (is_free || (handover->is_due && handover->terms.is_forced));
}

/* No step is taken while observers get an event: so all of them get all events in one order, and
 * the provider is not called inside its own report. A leadership may have begun, and be asked to
 * end, before its BATON_EVENT_ACQUIRED: observers get that first. */
static void step(struct election *election)
{
    struct handover *handover = election->handover;
    bool is_known = election->announced_epoch == lease_cell_epoch(election->cell);

    if (!election->later && !handover->is_announced && !handover->is_going && is_known) {
        announce(handover);
    }
    if (election->later) { /* an observer may have left */
        handover_proceed(election);
        election_catch_up(election);
        return;
    }
    if (handover && may_go(handover)) {
        go(handover);
    } else if (handover && handover->is_due && !handover->is_going) {
        give_up(handover);
    }
}

static void on_timer(uv_timer_t *timer);

/* Whole milliseconds, and none too late: it may be the lease that ends. */
static void wait_for_time(struct handover *handover)
{
    span left = instant_since(handover->drained_by, clock_now());

    handover->is_due = left.ns < 1000000;
    (void)uv_timer_start(&handover->timer, on_timer,
                         handover->is_due ? 0 : (uint64_t)(left.ns / 1000000), 0);
}

static void on_timer(uv_timer_t *timer)
{
    struct handover *handover = timer->data;

    wait_for_time(handover);
    step(handover->election);
}

void handover_proceed(struct election *election)
{
    if (election->handover && !election->handover->is_going) {
        (void)uv_timer_start(&election->handover->timer, on_timer, 0, 0);
    }
}

void handover_hold(struct election *election)
{
    if (election->handover) {
        election->handover->holds++;
    }
}

void handover_release(struct election *election)
{
    if (election->handover && election->handover->holds > 0) {
        election->handover->holds--;
        if (election->telling == 0) {
            step(election);
        } else {
            handover_proceed(election);
        }
    }
}

bool handover_is_going(const struct election *election)
{
    const struct handover *handover = election->handover;

    return handover && (handover->is_going || (handover->is_announced && handover->holds == 0));
}

/* ---- What the provider tells ----------------------------------------------------------------- */

static bool has_failed(const struct handover *handover, const struct baton_event *event)
{
    return event->type == BATON_EVENT_ERROR && event->error.code == BATON_ETIMEDOUT &&
           (handover->terms.is_wanted || (handover->is_going && handover->terms.to[0]));
}

/* Lost while it drained, and not to be won again. */
static void cordon_at_last(struct handover *handover)
{
    struct baton_error error = {0};

    if (handover->terms.kind == HANDOVER_CORDON && !handover->is_going &&
        handover->election->provider) {
        note_outcome(handover, set_cordoned(handover->election, true, &error), &error);
    }
}

struct handover *handover_end_by(struct election *election, const struct baton_event *event)
{
    struct handover *handover = election->handover;
    struct baton_error error = {0};

    if (!handover) {
        return NULL;
    }
    if (event->type == BATON_EVENT_LOST) {
        (void)detach(handover, BATON_OK, NULL);
        cordon_at_last(handover);
        return handover;
    }
    if (event->type == BATON_EVENT_STOPPED) {
        (void)error_set(&error, BATON_ECLOSED, "election \"%s\": it was stopped", election->name);
        return detach(handover, BATON_ECLOSED, &error);
    }
    return has_failed(handover, event) ? detach(handover, BATON_ETIMEDOUT, &event->error) : NULL;
}

/* ---- The beginning --------------------------------------------------------------------------- */

static instant end_of_draining(const struct handover *handover)
{
    if (handover->terms.is_wanted) {
        return INSTANT_NEVER; /* the provider looks at the time itself */
    }
    return handover->terms.is_forced ? instant_add(clock_now(), left_of(handover))
                                     : handover->terms.deadline;
}

/* A draining that the group wants goes on by the terms of the request that comes. */
static int drain(struct election *election, const struct terms *terms, struct baton_error *reterr)
{
    struct handover *handover = election->handover;

    if (!handover) {
        handover = calloc(1, sizeof(*handover));
        if (!handover) {
            return error_set(reterr, BATON_ENOMEM, "election \"%s\": out of memory",
                             election->name);
        }
        handover->election = election;
        (void)uv_timer_init(member_loop(election->member), &handover->timer);
        handover->timer.data = handover;
        election->handover = handover;
    }
    handover->terms = *terms;
    handover->drained_by = end_of_draining(handover);
    if (election->telling == 0) {
        wait_for_time(handover);
        handover->is_due = false;
        step(election);
    } else {
        handover_proceed(election);
    }
    return BATON_OK;
}

/* A hand-over under way goes on: it gives leadership away as well. Out of memory, the provider goes
 * on when the event's time is over. */
void handover_want(struct election *election, const struct baton_event *event)
{
    const struct terms wanted = {
        .is_wanted = true,
        .deadline = instant_add(clock_now(), SPAN_NS(event->lease_left_ns)),
    };

    if (!election->handover && drain(election, &wanted, NULL) != BATON_OK) {
        election_tell(election, event);
    }
}

static int cordon_follower(struct election *election, const struct handover_request *request,
                           struct baton_error *reterr)
{
    int code = set_cordoned(election, true, reterr);

    if (code == BATON_OK) {
        request->done(request->userdata, BATON_OK, NULL);
    }
    return code;
}

/* The group wants another leader, and the draining has not ended. */
static bool may_join(const struct handover *handover)
{
    return handover->terms.is_wanted && !handover->is_going;
}

static int check(const struct election *election, const struct handover_request *request,
                 struct baton_error *reterr)
{
    struct provider_election *provider = election->provider;
    int code = election_check(election, reterr);

    if (code != BATON_OK) {
        return code;
    }
    if (election->handover && !may_join(election->handover)) {
        return error_set(reterr, BATON_EBUSY, "election \"%s\": a hand-over is under way",
                         election->name);
    }
    if (!election_is_leader(election, NULL)) {
        return request->kind == HANDOVER_CORDON
                   ? BATON_OK
                   : error_set(reterr, BATON_ENOTLEADER,
                               "election \"%s\": this process does not lead it", election->name);
    }
    if (request->to && strlen(request->to) >= BATON_NAME_MAX) {
        return error_set(reterr, BATON_EINVAL, "member \"%.40s\": must have 1 to %d bytes",
                         request->to, BATON_NAME_MAX - 1);
    }
    if (request->to && request->to[0]) {
        return provider->ops->check_heir(provider, request->to, reterr);
    }
    return request->needs_heir ? provider->ops->check_heir(provider, NULL, reterr) : BATON_OK;
}

int handover_begin(struct election *election, const struct handover_request *request,
                   struct baton_error *reterr)
{
    struct terms begun = {
        .kind = request->kind,
        .is_forced = request->is_forced,
        .deadline = request->deadline,
        .limit = request->limit,
        .done = request->done,
        .userdata = request->userdata,
    };
    int code = check(election, request, reterr);

    if (code != BATON_OK) {
        return code;
    }
    if (!election_is_leader(election, NULL) && request->kind == HANDOVER_CORDON) {
        return cordon_follower(election, request, reterr);
    }
    (void)snprintf(begun.to, sizeof(begun.to), "%s", request->to ? request->to : "");
    return drain(election, &begun, reterr);
}

int handover_uncordon(struct election *election, struct baton_error *reterr)
{
    int code = election_check(election, reterr);

    return code ? code : set_cordoned(election, false, reterr);
}

int handover_set_able(struct election *election, bool is_able, struct baton_error *reterr)
{
    int code = election_check(election, reterr);

    if (code == BATON_OK && election->is_unable == is_able) {
        election->is_unable = !is_able;
        code = set_cordoned(election, election->is_cordoned, reterr);
        election->is_unable = code == BATON_OK ? !is_able : is_able;
    }
    return code;
}

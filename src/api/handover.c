/* Giving leadership away: member/handover.h does it; here are the threads that ask for it, and the
 * listeners that it waits for.
 *
 *   BATON_EVENT_DRAIN ─▶ drain_begin: a hold ─▶ listeners … the last one returns ─▶ on_drained
 */
#include "api/handover.h"

#include "api/perform.h"
#include "member/handover.h"

#include <stdio.h>
#include <string.h>

/* For the round trips, after the draining, however much time there is: until then nothing can be
 * written, in providers that wait for the heir. */
enum { HAND_OVER_MS = 5000 };

/* ---- Draining -------------------------------------------------------------------------------- */

struct drained_call {
    struct call base;
    struct baton_election *election;
};

/* Another draining may have begun since the call was queued: the last of its listeners queues the
 * call again. */
static void run_drained(struct call *base)
{
    struct baton_election *election = ((struct drained_call *)base)->election;
    bool is_over;

    lock(base->baton);
    is_over = election->drains_waiting == 0;
    if (is_over) {
        election->drained = NULL;
    }
    unlock(base->baton);
    if (is_over) {
        handover_release(part_of(election));
        call_finish(base, BATON_OK, NULL);
    }
}

/* Without memory no call can end the hold, and the draining lasts until its deadline. */
void drain_begin(struct baton_election *election)
{
    struct drained_call *call = NULL;

    if (!election->drained && (call = call_new(election->baton, sizeof(*call), run_drained))) {
        call->election = election;
        lock(election->baton);
        election->drained = &call->base;
        unlock(election->baton);
    }
    handover_hold(part_of(election));
}

void drain_end(struct baton_election *election)
{
    struct call *drained;

    lock(election->baton);
    drained = election->drained;
    election->drained = NULL;
    unlock(election->baton);
    if (drained) {
        call_finish(drained, BATON_OK, NULL);
    }
}

/* ---- What the program asks ------------------------------------------------------------------- */

struct handover_call {
    struct call base;
    struct baton_election *election;
    enum handover_kind kind;
    char to[BATON_NAME_MAX]; /* "": the best placed */
    instant deadline;
};

/* Under the lock. Nobody may wait for the call: then baton_leave() does, before it frees. */
static void drop_handover(struct call *base)
{
    ((struct handover_call *)base)->election->users--;
    (void)pthread_cond_broadcast(&base->baton->changed);
}

static void run_handover(struct call *base)
{
    struct handover_call *call = (struct handover_call *)base;
    const struct handover_request request = {
        .kind = call->kind,
        .to = call->to,
        .deadline = call->deadline,
        .limit = SPAN_MS(HAND_OVER_MS),
        .is_forced = true, /* a listener is not to keep leadership for ever */
        .done = call_done,
        .userdata = call,
    };
    struct baton_error error = {0};
    int code = handover_begin(part_of(call->election), &request, &error);

    if (code != BATON_OK) {
        call_finish(base, code, &error);
    }
}

static int hand_over(struct baton_election *election, enum handover_kind kind, const char *to,
                     int64_t timeout_ms, struct baton_error *reterr)
{
    struct handover_call *call;
    int code = check_owner(election->baton, reterr);

    if (code != BATON_OK) {
        return code;
    }
    call = call_new(election->baton, sizeof(*call), run_handover);
    if (!call) {
        return error_set(reterr, BATON_ENOMEM, "election \"%s\": out of memory",
                         baton_election_name(election));
    }
    lock(election->baton);
    election->users++;
    unlock(election->baton);
    call->base.drop = drop_handover;
    call->election = election;
    call->kind = kind;
    call->deadline = perform_deadline(timeout_ms);
    (void)snprintf(call->to, sizeof(call->to), "%s", to);
    call->base.dispatches = true;
    code = perform(&call->base, perform_and_a_turn(timeout_ms), BATON_OK, reterr);
    call_unref(&call->base);
    return code;
}

int baton_resign(struct baton_election *election, int64_t timeout_ms, struct baton_error *reterr)
{
    return hand_over(election, HANDOVER_RESIGN, "", timeout_ms, reterr);
}

int baton_pass(struct baton_election *election, const char *to, int64_t timeout_ms,
               struct baton_error *reterr)
{
    if (!to[0] || strlen(to) >= BATON_NAME_MAX) {
        return error_set(reterr, BATON_EINVAL, "member \"%.40s\": must have 1 to %d bytes", to,
                         BATON_NAME_MAX - 1);
    }
    return hand_over(election, HANDOVER_RESIGN, to, timeout_ms, reterr);
}

int baton_cordon(struct baton_election *election, struct baton_error *reterr)
{
    return hand_over(election, HANDOVER_CORDON, "", BATON_TIMEOUT_DEFAULT, reterr);
}

struct uncordon_call {
    struct call base;
    struct baton_election *election;
};

static void run_uncordon(struct call *base)
{
    struct baton_error error = {0};
    int code = handover_uncordon(part_of(((struct uncordon_call *)base)->election), &error);

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
        return error_set(reterr, BATON_ENOMEM, "election \"%s\": out of memory",
                         baton_election_name(election));
    }
    call->election = election;
    code = perform(&call->base, BATON_TIMEOUT_DEFAULT, BATON_OK, reterr);
    call_unref(&call->base);
    return code;
}

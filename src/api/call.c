/* Requests of any thread, carried out on the loop's. */
#include "api/internal.h"

#include "base/invariant.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DEFAULT_TIMEOUT_MS = 30000, LOOP_TURN_MS = 1000 };

bool on_loop(const struct baton *baton)
{
    return pthread_equal(pthread_self(), baton->thread) != 0;
}

int check_owner(const struct baton *baton, struct baton_error *reterr)
{
    if (getpid() == baton->owner) {
        return BATON_OK;
    }
    return error_set(reterr, BATON_ECLOSED,
                     "a forked child (pid %d) is no member, its parent (pid %d) is: open anew in "
                     "the child",
                     (int)getpid(), (int)baton->owner);
}

int check_feature(const struct baton *baton, unsigned feature, const char *what,
                  struct baton_error *reterr)
{
    if (baton->ops->features & feature) {
        return BATON_OK;
    }
    return error_set(reterr, BATON_ENOTSUP, "the provider %s: has no %s", baton->ops->scheme, what);
}

void *call_new(struct baton *baton, size_t bytes, void (*run)(struct call *call))
{
    struct call *call = calloc(1, bytes);

    if (call) {
        call->baton = baton;
        call->run = run;
        call->references = 1;
    }
    return call;
}

void call_unref_locked(struct call *call)
{
    if (--call->references == 0) {
        if (call->drop) {
            call->drop(call);
        }
        free(call);
    }
}

void call_unref(struct call *call)
{
    struct baton *baton = call->baton;

    lock(baton);
    call_unref_locked(call);
    unlock(baton);
}

void call_finish(struct call *call, int code, const struct baton_error *error)
{
    struct baton *baton = call->baton;

    lock(baton);
    if (!call->is_done) {
        call->is_done = true;
        call->code = code;
        if (code != BATON_OK) {
            (void)error_set(&call->error, code, "%s",
                            error && error->message[0] ? error->message : baton_strerror(code));
        }
        (void)pthread_cond_broadcast(&baton->changed);
        call_unref_locked(call);
    }
    unlock(baton);
}

void call_done(void *userdata, int code, const struct baton_error *error)
{
    call_finish(userdata, code, error);
}

void call_requeue_locked(struct call *call)
{
    struct baton *baton = call->baton;

    INVARIANT(!call->is_done);
    if (!call->is_queued && baton->phase != BATON_STOPPED) {
        call->is_queued = true;
        call->references++;
        call->next = NULL;
        *baton->calls_last = call;
        baton->calls_last = &call->next;
        (void)uv_async_send(&baton->wake);
    }
}

/* A call that finishes inside run() is freed by the reference of the queue, not under its feet. */
void call_run_queued(struct baton *baton)
{
    lock(baton);
    while (baton->calls_first) {
        struct call *call = baton->calls_first;
        bool is_done = call->is_done;
        baton->calls_first = call->next;
        if (!baton->calls_first) {
            baton->calls_last = &baton->calls_first;
        }
        call->is_queued = false;
        unlock(baton);
        if (!is_done) {
            call->run(call);
        }
        lock(baton);
        call_unref_locked(call);
    }
    unlock(baton);
}

instant call_deadline(int64_t timeout_ms)
{
    int64_t ms = timeout_ms < 0 ? DEFAULT_TIMEOUT_MS : timeout_ms;

    return instant_add(clock_now(), SPAN_MS(ms < INT64_MAX / 1000000 ? ms : INT64_MAX / 1000000));
}

int64_t call_and_a_turn(int64_t timeout_ms)
{
    int64_t ms = timeout_ms < 0 ? DEFAULT_TIMEOUT_MS : timeout_ms;

    return ms < INT64_MAX - LOOP_TURN_MS ? ms + LOOP_TURN_MS : ms;
}

/* The condition waits by CLOCK_MONOTONIC, which stands still while the machine sleeps: so a wait
 * lasts at most a second at a time, and the deadline is CLOCK_BOOTTIME's. */
bool call_wait_locked(struct baton *baton, instant deadline)
{
    span left = instant_since(deadline, clock_now());
    struct timespec until;

    if (left.ns <= 0) {
        return false;
    }
    left.ns = left.ns < 1000000000 ? left.ns : 1000000000;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += left.ns;
    while (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    (void)pthread_cond_timedwait(&baton->changed, &baton->lock, &until);
    return true;
}

/* The loop's own reference, until it is finished, is taken here. */
static int begin(struct call *call, struct baton_error *reterr)
{
    struct baton *baton = call->baton;
    int code = BATON_OK;

    lock(baton);
    if (baton->phase != BATON_RUNNING) {
        code = error_set(reterr, BATON_ECLOSED, "it was stopped: open anew");
    } else {
        call->references++;
        if (!on_loop(baton)) {
            call_requeue_locked(call);
        }
    }
    unlock(baton);
    return code;
}

static bool is_dispatcher_locked(const struct baton *baton)
{
    return baton->has_dispatcher && pthread_equal(pthread_self(), baton->dispatcher);
}

/* What the call waits for may be a listener that this very thread would run. False: time is up. */
static bool wait_a_while_locked(struct call *call, instant deadline)
{
    struct baton *baton = call->baton;

    if (call->dispatches && baton->dispatch.first && is_dispatcher_locked(baton)) {
        unlock(baton);
        (void)baton_dispatch(baton);
        lock(baton);
        return true;
    }
    return call_wait_locked(baton, deadline);
}

int call_perform(struct call *call, int64_t timeout_ms, int unfinished, struct baton_error *reterr)
{
    struct baton *baton = call->baton;
    instant deadline = call_deadline(timeout_ms);
    bool in_place = on_loop(baton);
    bool waits = !in_place;
    int code = begin(call, reterr);

    if (code != BATON_OK) {
        return code;
    }
    if (in_place) {
        call->run(call);
    }
    lock(baton);
    if (call->dispatches && baton->is_dispatching && is_dispatcher_locked(baton)) {
        waits = false; /* the listener that called has to return first */
    }
    while (!call->is_done && waits && wait_a_while_locked(call, deadline)) {
    }
    if (call->is_done) {
        code = call->code;
        if (code != BATON_OK && reterr) {
            *reterr = call->error;
        }
    } else if (waits) {
        code = error_set(reterr, BATON_ETIMEDOUT, "no answer in time; it may still be carried out");
    } else if ((code = unfinished) != BATON_OK) {
        (void)error_set(reterr, code,
                        "a listener on the loop's thread cannot wait for the loop: use "
                        "BATON_ON_THREAD or BATON_ON_DISPATCH");
    }
    unlock(baton);
    return code;
}

#include "api/perform.h"

#include "api/dispatch.h"

#include <time.h>

enum { DEFAULT_TIMEOUT_MS = 30000, LOOP_TURN_MS = 1000 };

instant perform_deadline(int64_t timeout_ms)
{
    int64_t ms = timeout_ms < 0 ? DEFAULT_TIMEOUT_MS : timeout_ms;

    return instant_add(clock_now(), SPAN_MS(ms < INT64_MAX / 1000000 ? ms : INT64_MAX / 1000000));
}

int64_t perform_and_a_turn(int64_t timeout_ms)
{
    int64_t ms = timeout_ms < 0 ? DEFAULT_TIMEOUT_MS : timeout_ms;

    return ms < INT64_MAX - LOOP_TURN_MS ? ms + LOOP_TURN_MS : ms;
}

void perform_condition(pthread_cond_t *ret)
{
    pthread_condattr_t attributes;

    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(ret, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

/* The condition waits by CLOCK_MONOTONIC, which stands still while the machine sleeps: so a wait
 * lasts at most a second at a time, and the deadline is CLOCK_BOOTTIME's. */
bool perform_wait_locked(struct baton *baton, pthread_cond_t *condition, instant deadline)
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
    (void)pthread_cond_timedwait(condition, &baton->lock, &until);
    return true;
}

/* The loop's own reference, until it is finished, is taken here. */
static int begin(struct call *call, struct baton_error *reterr)
{
    struct baton *baton = call->baton;
    int code = BATON_OK;

    lock(baton);
    if (baton->phase != BATON_RUNNING) {
        code = error_set(reterr, BATON_ECLOSED, "the handle was closed: open another one");
    } else {
        call->references++;
        call->is_asked = true;
        if (!on_loop(baton)) {
            call_queue_locked(call);
        }
    }
    unlock(baton);
    return code;
}

/* The call may wait for a listener that this thread itself runs. False: the deadline has passed. */
static bool wait_a_while_locked(struct call *call, instant deadline)
{
    struct baton *baton = call->baton;

    if (call->dispatches && baton->dispatch.first && dispatch_is_here_locked(baton)) {
        unlock(baton);
        (void)baton_dispatch(baton);
        lock(baton);
        return true;
    }
    return perform_wait_locked(baton, call->ended ? call->ended : &baton->changed, deadline);
}

/* One that dispatches meanwhile waits for `changed`, which tells it of events, too. Any other waits
 * for its own end alone: else each reply would wake all the threads that wait. */
static void wait_locked(struct call *call, instant deadline)
{
    pthread_cond_t ended;

    perform_condition(&ended);
    call->ended = call->dispatches ? NULL : &ended;
    while (!call->is_done && wait_a_while_locked(call, deadline)) {
    }
    call->ended = NULL;
    (void)pthread_cond_destroy(&ended);
}

int perform_refuse(struct baton_error *reterr)
{
    return error_set(reterr, BATON_EDEADLK,
                     "a listener cannot wait for its own thread, nor the loop's thread for the "
                     "loop: call from another thread, or use BATON_ON_THREAD or BATON_ON_DISPATCH");
}

int perform(struct call *call, int64_t timeout_ms, int unfinished, struct baton_error *reterr)
{
    struct baton *baton = call->baton;
    instant deadline = perform_deadline(timeout_ms);
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
    if (call->dispatches && baton->is_dispatching && dispatch_is_here_locked(baton)) {
        waits = false; /* the listener that called has to return first */
    }
    if (waits) {
        wait_locked(call, deadline);
    }
    if (call->is_done) {
        code = call->code;
        if (code != BATON_OK && reterr) {
            *reterr = call->error;
        }
    } else if (waits) {
        code = error_set(reterr, BATON_ETIMEDOUT, "no answer in time; it may still be carried out");
    } else if ((code = unfinished) != BATON_OK) {
        code = perform_refuse(reterr);
    }
    unlock(baton);
    return code;
}

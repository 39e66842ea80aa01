/* Requests of any thread, carried out on the loop's. */
#include "api/call.h"

#include "base/invariant.h"

#include <stdlib.h>

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

static void unref_locked(struct call *call)
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
    unref_locked(call);
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
        (void)pthread_cond_broadcast(call->ended ? call->ended : &baton->changed);
        unref_locked(call);
    }
    unlock(baton);
}

void call_done(void *userdata, int code, const struct baton_error *error)
{
    call_finish(userdata, code, error);
}

void call_queue_locked(struct call *call)
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

/* A call that finishes inside run() is freed by the reference of the queue, not under its feet. One
 * that was queued behind the stop does not run: its provider is closing. */
void call_run_queued(struct baton *baton)
{
    const struct baton_error stopped = {BATON_ECLOSED, "it was stopped: open anew"};

    lock(baton);
    while (baton->calls_first) {
        struct call *call = baton->calls_first;
        bool is_done = call->is_done;
        bool is_late = call->is_asked && baton->phase != BATON_RUNNING;
        baton->calls_first = call->next;
        if (!baton->calls_first) {
            baton->calls_last = &baton->calls_first;
        }
        call->is_queued = false;
        unlock(baton);
        if (is_late) {
            call_finish(call, BATON_ECLOSED, &stopped);
        } else if (!is_done) {
            call->run(call);
        }
        lock(baton);
        /* The analyzer does not see that the queue's reference is beside the one of the end.
         * NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
        unref_locked(call);
    }
    unlock(baton);
}

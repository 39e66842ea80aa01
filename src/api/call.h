/* A request of any thread, carried out on the loop's. */
#ifndef API_CALL_H
#define API_CALL_H

#include "api/object.h"

/* First member of a request's own struct, which holds copies of all that it needs: its caller may
 * have stopped waiting. Freed with the last reference: the caller's, and the loop's until it is
 * finished. */
struct call {
    struct baton *baton;
    void (*run)(struct call *call);  /* on the loop; leads to one call_finish() */
    void (*drop)(struct call *call); /* frees what the call owns, but not itself; or NULL */
    struct call *next;
    unsigned references;   /* these five: under the lock */
    pthread_cond_t *ended; /* its caller waits for it; NULL: for the baton's `changed` */
    bool is_queued;
    bool is_done;
    bool is_asked;   /* by perform(): it ends with BATON_ECLOSED when the baton stops first */
    bool dispatches; /* its caller, if it is the dispatching thread, dispatches while it waits */
    int code;
    struct baton_error error;
};

/* A zeroed call of `bytes` with one reference. NULL when out of memory. */
void *call_new(struct baton *baton, size_t bytes, void (*run)(struct call *call));
void call_unref(struct call *call);
/* On the loop. The code is 0, or that of `error` (NULL: a general text). Later ones do nothing. */
void call_finish(struct call *call, int code, const struct baton_error *error);
/* As a provider_done_cb, with the call for userdata. */
void call_done(void *userdata, int code, const struct baton_error *error);
/* Queues it for the loop, or once more; under the lock, and only while it is not done. */
void call_queue_locked(struct call *call);
/* On the loop: runs the queued calls. */
void call_run_queued(struct baton *baton);

#endif

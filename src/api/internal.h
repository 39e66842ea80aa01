/* The public library behind <baton.h>: who owns what, and which thread may touch it.
 *
 *   caller's threads ──▶ calls ──▶ loop's thread ──▶ provider
 *   listeners' threads ◀── notices ◀── events ◀──────────┘
 *
 * The loop's thread owns the provider and its elections. A caller's request is a `call`: it is
 * queued, run on the loop, finished there (at once, or by the provider's callback) and waited for.
 * What else both sides look at is guarded by `baton->lock`, which is never held while foreign code
 * runs: no listener, no provider's function.
 */
#ifndef API_INTERNAL_H
#define API_INTERNAL_H

#include "base/log.h"
#include "provider/provider.h"

#include <baton.h>
#include <pthread.h>
#include <sys/types.h>
#include <uv.h>

/* ---- Calls ----------------------------------------------------------------------------------- */

/* First member of a request's own struct, which holds copies of all that it needs: its caller may
 * have stopped waiting. Freed with the last reference: the caller's, and the loop's until it is
 * finished. */
struct call {
    struct baton *baton;
    void (*run)(struct call *call);  /* on the loop; leads to one call_finish() */
    void (*drop)(struct call *call); /* frees what the call owns, but not itself; or NULL */
    struct call *next;
    unsigned references; /* these three: under the lock */
    bool is_queued;
    bool is_done;
    bool dispatches; /* its caller goes on dispatching while it waits, if it is who dispatches */
    int code;
    struct baton_error error;
};

/* A zeroed call of `bytes`, referenced by its caller. NULL when out of memory. */
void *call_new(struct baton *baton, size_t bytes, void (*run)(struct call *call));
/* Runs it on the loop and waits until it is done; on the loop itself it is run in place, and if it
 * is not done then, the answer is `unfinished` (BATON_OK or BATON_EBUSY). So it is for one that
 * dispatches, inside baton_dispatch(). */
int call_perform(struct call *call, int64_t timeout_ms, int unfinished, struct baton_error *reterr);
void call_unref(struct call *call);
void call_unref_locked(struct call *call);
/* On the loop. The code is 0, or that of `error` (NULL: a general text). Later ones do nothing. */
void call_finish(struct call *call, int code, const struct baton_error *error);
/* As a provider_done_cb, with the call for userdata. */
void call_done(void *userdata, int code, const struct baton_error *error);
/* Queues it for the loop once more; under the lock, and only while it is not done. */
void call_requeue_locked(struct call *call);
/* On the loop: runs what is queued. */
void call_run_queued(struct baton *baton);
/* Under the lock: waits for `changed`, until the deadline. False: it has come. */
bool call_wait_locked(struct baton *baton, instant deadline);
instant call_deadline(int64_t timeout_ms);
/* For a call whose deadline the provider keeps: its answer then comes through the loop. */
int64_t call_and_a_turn(int64_t timeout_ms);

/* ---- Notices --------------------------------------------------------------------------------- */

/* An event on its way to a listener that does not run on the loop. A copy, texts and all. */
struct notice {
    struct notice *next;
    struct baton_listener *listener;
    struct baton_event event;
};

struct mailbox {
    struct notice *first;
    struct notice **last;
    size_t count;
};

struct baton_listener {
    struct baton_listener *next;
    struct baton_election *election;
    uint32_t mask;
    enum baton_delivery delivery;
    baton_listener_fn fn;
    void *userdata;
    bool is_once;
    bool has_handle;  /* somebody may call baton_off() */
    pthread_t thread; /* BATON_ON_THREAD: its own */
    /* Under the lock: */
    unsigned references; /* the list's, each notice's, each run's, its thread's */
    bool is_off;         /* not called any more */
    bool is_ending;      /* its thread ends once its mailbox is empty */
    bool is_detached;
    bool is_running;
    pthread_t runner;
    size_t missed;
    struct mailbox mailbox;
};

/* ---- The objects ----------------------------------------------------------------------------- */

struct resignation; /* handover.c */
struct leader;      /* leaders.c */

/* There may be ten thousand of them: what is large, or the same for many, is not in here. */
struct baton_election {
    struct baton_election *next; /* under the lock */
    struct baton *baton;
    struct provider_election *provider; /* loop; NULL once it has stopped */
    struct lease_cell *cell;
    /* Under the lock: what the events said last, and who listens. */
    enum baton_role role;
    uint64_t acquired_epoch; /* 0: not told of one that lasts */
    struct leader *leader;   /* NULL: nobody */
    uint64_t leader_epoch;
    bool is_stopped;
    struct baton_listener *listeners;
    unsigned users;                  /* calls of listeners under way, and listeners' threads */
    unsigned walks;                  /* of the list, by the loop: nothing is unlinked meanwhile */
    unsigned drains_waiting;         /* listeners that have not returned from BATON_EVENT_DRAIN */
    struct resignation *resignation; /* under way */
    struct call *leaving;            /* loop only */
    char name[];
};

enum baton_phase { BATON_RUNNING, BATON_STOPPING, BATON_STOPPED };

struct tap; /* taps.c */

struct baton {
    pid_t owner; /* a forked child has another */
    uv_loop_t loop;
    uv_async_t wake;
    pthread_t thread;
    struct provider *provider; /* loop only */
    const struct provider_ops *ops;
    struct logger *logger;
    bool announces_crashes;
    int event_fd;     /* readable while the dispatch mailbox is not empty */
    struct tap *taps; /* loop only */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* anything under the lock did */
    /* Under the lock: */
    enum baton_phase phase;
    bool is_joined;
    struct call *calls_first, **calls_last;
    struct baton_election *elections;
    struct leader *leaders;        /* by id */
    struct baton_listener *unused; /* to be freed */
    struct mailbox dispatch;
    bool is_dispatching;
    bool has_dispatcher;
    pthread_t dispatcher; /* who called baton_dispatch() last */
};

static inline void lock(struct baton *baton)
{
    (void)pthread_mutex_lock(&baton->lock);
}
static inline void unlock(struct baton *baton)
{
    (void)pthread_mutex_unlock(&baton->lock);
}

bool on_loop(const struct baton *baton);
/* BATON_ECLOSED in a forked child. */
int check_owner(const struct baton *baton, struct baton_error *reterr);
/* BATON_EINVAL unless it is a JSON object or NULL. */
int metadata_check(const char *metadata, struct baton_error *reterr);
/* BATON_ENOTSUP without it. */
int check_feature(const struct baton *baton, unsigned feature, const char *what,
                  struct baton_error *reterr);

/* loop.c. A thread that handles no signals: those are the program's own. Returns errno's value. */
int thread_begin(pthread_t *ret, void *(*body)(void *), void *userdata);

/* listener.c. On the loop, without the lock. */
void listeners_tell(struct baton_election *election, const struct baton_event *event);
/* Frees those that nobody refers to any more; under the lock, and not from among them. */
void listeners_bury_locked(struct baton *baton);
/* Waits until none of them runs, and lets go of them. Any thread but a listener's. */
void listeners_end(struct baton_election *election);
void mailbox_init(struct mailbox *mailbox);

/* handover.c. On the loop. It tells the listeners of BATON_EVENT_DRAIN itself. */
void handover_event(struct baton_election *election, const struct baton_event *event);
/* All have been told of a leadership. */
void handover_acquired(struct baton_election *election);
/* All listeners of BATON_EVENT_DRAIN have returned; under the lock. */
void handover_drained_locked(struct baton_election *election);

/* leaders.c. Under the lock. A reference to what is known of this member, whose id is not empty;
 * NULL when out of memory. */
struct leader *leader_get_locked(struct baton *baton, const struct baton_member *member);
void leader_drop_locked(struct baton *baton, struct leader *leader); /* NULL allowed */
const struct baton_member *leader_member(const struct leader *leader);

/* election.c. After nobody looks any more. */
void election_free(struct baton_election *election);

/* taps.c. */
void taps_free(struct baton *baton);

#endif

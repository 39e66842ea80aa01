/* What lies behind the handles of <baton.h>, and which thread may touch it.
 *
 *   caller's threads ──▶ calls ──▶ loop's thread ──▶ member/
 *   listeners' threads ◀── notices ◀── events ◀──────────┘
 *
 * The loop's thread owns the member and its elections. What a caller asks for becomes a call
 * (call.h): it is queued, run on the loop, finished there (at once, or by a callback) and waited
 * for (perform.h). What else both sides look at is guarded by `baton->lock`, which is never held
 * while foreign code runs: no listener, no function of member/.
 *
 * The files from below: object, call, leaders; notice; dispatch; perform; listener; and on top, for
 * one part of <baton.h> each, loop, election, handover, members, state, subscription; work, with
 * its parts, for <baton/work.h>.
 */
#ifndef API_OBJECT_H
#define API_OBJECT_H

#include "base/log.h"
#include "member/election.h"

#include <baton.h>
#include <pthread.h>
#include <sys/types.h>
#include <uv.h>

struct baton_work; /* work.h */
struct call;       /* call.h */
struct leader;     /* leaders.h */
struct notice;     /* notice.h */
struct work_wait;  /* work.h */

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
    pthread_t thread; /* BATON_ON_THREAD: its own */
    bool is_once;
    bool has_handle; /* the program may call baton_off() */
    /* Under the lock: */
    bool is_off;    /* not called any more */
    bool is_ending; /* its thread ends once its mailbox is empty */
    bool is_detached;
    unsigned references; /* the list's, each notice's, each run's, its thread's */
    unsigned running;    /* nested calls of its function */
    size_t missed;
    struct mailbox mailbox;
};

/* There may be ten thousand of them: large data, and data that many share, is elsewhere. The
 * engine's election lies behind this struct in the same block. */
struct baton_election {
    struct baton_election *next; /* under the lock */
    struct baton *baton;
    struct observer observer; /* loop only */
    /* Under the lock: the state by the latest events, and the listeners. */
    struct leader *leader; /* NULL: none */
    uint64_t leader_epoch;
    struct baton_listener *listeners;
    struct call *drained;    /* queued when they have returned; NULL: no drain is under way */
    unsigned drains_waiting; /* listeners that have not returned from BATON_EVENT_DRAIN */
    unsigned users;          /* calls of listeners under way, listeners' threads, hand-overs */
    uint16_t walks;          /* of the list, by the loop: nothing is unlinked meanwhile */
    uint8_t role;
    bool is_stopped;
};

/* Its name and its lease: any thread; else the loop only. */
static inline struct election *part_of(const struct baton_election *election)
{
    return (struct election *)(election + 1);
}

enum baton_phase { BATON_RUNNING, BATON_STOPPING, BATON_STOPPED };

struct baton {
    pid_t owner; /* a forked child has another */
    uv_loop_t loop;
    uv_async_t wake;
    pthread_t thread;
    struct member *member; /* loop only */
    struct logger *logger;
    bool announces_crashes;
    _Atomic int64_t alive_ns;                 /* any thread: the latest baton_alive(); 0: none */
    int event_fd;                             /* readable while the dispatch mailbox is not empty */
    struct baton_subscription *subscriptions; /* loop only, and so are these five: */
    struct baton_work *works;
    struct work_wait *work_waits;
    unsigned work_questions; /* to leaders of pools, that wait for their replies */
    unsigned work_calls;     /* callbacks of <baton/work.h> under way */
    void (*works_stopped)(struct baton *baton); /* waits for their end; NULL: nobody does */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* anything under the lock did */
    /* Under the lock: */
    enum baton_phase phase;
    bool is_joining;
    bool is_joined; /* the loop's thread has ended */
    struct call *calls_first, **calls_last;
    struct baton_election *elections;
    struct leader *leaders;        /* by id */
    struct baton_listener *unused; /* to be freed */
    struct mailbox dispatch;
    bool is_dispatching;
    bool has_dispatcher;
    pthread_t dispatcher; /* the thread that called baton_dispatch() last */
};

static inline void lock(struct baton *baton)
{
    (void)pthread_mutex_lock(&baton->lock);
}
static inline void unlock(struct baton *baton)
{
    (void)pthread_mutex_unlock(&baton->lock);
}

/* The calling thread is the loop's, until it ends. */
void loop_begins_here(const struct baton *baton);
bool on_loop(const struct baton *baton);
/* BATON_ECLOSED in a forked child. */
int check_owner(const struct baton *baton, struct baton_error *reterr);

/* A thread that handles no signals: those are the program's own. Returns errno's value. */
int thread_begin(pthread_t *ret, void *(*body)(void *), void *userdata);

#endif

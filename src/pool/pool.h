/* A pool's leader and one worker, as parts of a process: the cores of work/ on a member's loop.
 *
 *          cli   api
 *           │ calls      ▲ on_start, on_halt, on_event
 *           ▼            │
 *   pool      candidate and worker: opened, left, closed      this file
 *   client    list, cancel, drain, status; submit; wait       client.h, submit.h, wait.h
 *           │
 *        member, work
 *
 * A process may be a candidate for the pool's leadership, a worker, or both. It works through the
 * elections "work/POOL" and "work/POOL/WORKER", the keys below "work/POOL/" and the channels
 * "work/POOL", "work/POOL/WORKER" and "work/POOL/all" (work/leader.h).
 *
 * Threads: all belongs to the loop's thread, but for the functions that say otherwise. Callbacks
 * come on it too, and may call all functions of this file but pool_close(). Nothing blocks.
 */
#ifndef POOL_POOL_H
#define POOL_POOL_H

#include "member/member.h"
#include "pool/names.h"
#include "work/leader.h"
#include "work/worker.h"

struct pool; /* opaque */

/* A copy of an item that is to run here. Borrowed during the call; work_item_ref() keeps the item.
 */
struct pool_start {
    struct work_item *item;
    uint64_t epoch;         /* of this attempt: its fencing token */
    uint32_t attempt;       /* from 1 */
    const void *checkpoint; /* what an earlier attempt stored last; NULL: nothing */
    size_t checkpoint_bytes;
};

/* X(symbol, name) */
#define POOL_EVENTS(X)                                                                             \
    X(POOL_LEADER, "pool-leader") /* name ("": none), epoch: who leads the pool now */             \
    X(POOL_LEADS, "pool-leads")   /* epoch: this process does */                                   \
    X(POOL_READY, "pool-ready")   /* epoch: and it places items from now on */                     \
    X(POOL_LEADS_NO_MORE, "pool-leads-no-more") /* epoch */                                        \
    X(POOL_WORKER_USED, "worker-used")          /* name: the first items were placed on it */      \
    X(POOL_WORKER_GONE, "worker-gone")          /* name: its session is over, as is proved */      \
    X(POOL_SESSION, "worker-session")           /* epoch: this process's worker may run items */   \
    X(POOL_SESSION_LOST, "worker-session-lost") /* epoch: no more; all copies are stopped */       \
    X(POOL_ERROR, "pool-error")                 /* error: tried again, unless it says otherwise */

enum pool_event_type {
#define POOL_EVENT_ENUM(symbol, name) symbol,
    POOL_EVENTS(POOL_EVENT_ENUM)
#undef POOL_EVENT_ENUM
};

const char *pool_event_name(enum pool_event_type type); /* static storage */

/* Borrowed during the call; fields that its type does not use are zero. */
struct pool_event {
    enum pool_event_type type;
    const char *name; /* of a process or worker, or NULL */
    uint64_t epoch;
    struct baton_error error;
};

/* What the pool tells its program. */
struct pool_calls {
    /* Begins a copy, which ends by exactly one pool_ended(): perhaps before this returns. */
    void (*on_start)(void *userdata, const struct pool_start *start);
    /* Ends a copy that was started, by `deadline` at the latest, after which it must not act; then
     * pool_ended() as always. INSTANT_NEVER: in the program's own time, but before the lease ends
     * (pool_lease_left). May come again with an earlier deadline. */
    void (*on_halt)(void *userdata, const char *id, uint64_t epoch, instant deadline);
    /* For people and programs; NULL: unwanted. */
    void (*on_event)(void *userdata, const struct pool_event *event);
    void *userdata;
};

/* Texts are borrowed during the call to open. */
struct pool_config {
    const char *name;   /* names.h */
    bool may_lead;      /* campaigns for the pool's leadership */
    const char *worker; /* of two processes with the same name, one waits until the other has left.
                           NULL: this process runs nothing */
    /* Of the worker; `name` is filled in. on_start and on_halt are there. */
    struct work_worker_options worker_options;
    /* Shows the lease of the worker's session to supervisors; outlives the pool. NULL: unwanted. */
    struct lease_watch *lease;
    /* Of the leader; `epoch` and `random` are filled in. pool_leader_options() has the defaults. */
    struct work_leader_options leader_options;
    struct pool_calls calls;
};

/* The defaults, for programs to change: a report each second, … */
struct work_leader_options pool_leader_options(void);

/* Takes part in the pool. `member` is open longer than the pool. Callbacks may come before this
 * returns, after *ret was written.
 *
 * BATON_EINVAL names the wrong value; BATON_ENOTSUP: the provider has no state, no channels or one
 * election only; BATON_ENOMEM; or what the provider says to a campaign. */
int pool_open(struct pool **ret, struct member *member, const struct pool_config *config,
              struct baton_error *reterr);

/* Takes nothing new; services move, and jobs end. Services that have not moved 5 s after the last
 * job has ended are halted, as at the deadline. `left` comes once nothing runs here and the
 * leader has all results (0), or when at the deadline all that ran was halted (in the program's own
 * time) and has ended (BATON_ETIMEDOUT): the pool gives it to other workers, as lost and not as
 * failed, and so perhaps what has a result that is not confirmed (pool_unconfirmed). Perhaps before
 * this returns. Then close. BATON_EBUSY: it is leaving already. */
int pool_leave(struct pool *pool, instant deadline, void (*left)(void *userdata, int code),
               void *userdata, struct baton_error *reterr);

/* Of a pool that leaves: its deadline is now. */
void pool_leave_now(struct pool *pool);

/* Leaves its elections, and frees the pool before `closed` comes, perhaps before this returns; no
 * other callback comes. The worker's session ends here: what still runs must not act any more. */
void pool_close(struct pool *pool, void (*closed)(void *userdata), void *userdata);

const char *pool_name(const struct pool *pool);
struct member *pool_member(const struct pool *pool);

/* ---- The worker's side ----------------------------------------------------------------------- */

/* The copy has ended, and nothing of it acts any more. Copied. BATON_ENOENT: no such copy was
 * started, or it was reported before. */
int pool_ended(struct pool *pool, const struct work_result *result);
/* The same of a copy that ended before its work was done, because its lease was over, or about to
 * be, as it saw it: it has no result, and the item is lost here and not failed. */
int pool_gave_up(struct pool *pool, const char *id, uint64_t epoch);

/* For the worker's next report; permille -1, keys NULL (else ended by NULL): as before.
 * BATON_ENOENT: it does not run here. */
int pool_progress(struct pool *pool, const char *id, int permille, const char *const *keys);

/* Stores what a later attempt of the item begins with; copied. `done` gets 0, BATON_ELOST (this
 * attempt is stale: a later one has stored its own, and this one gets on_halt) or the provider's
 * code; NULL: unwanted. It is kept as long as the item's entry in the ledger.
 *
 * BATON_ENOENT: it does not run here; BATON_EBUSY: its latest one is still being stored;
 * BATON_ETOOBIG, BATON_ENOMEM. */
enum { POOL_CHECKPOINT_MAX = 120 * 1024 }; /* bytes */
int pool_checkpoint(struct pool *pool, const char *id, uint64_t epoch, const void *data,
                    size_t bytes, provider_done_cb done, void *userdata,
                    struct baton_error *reterr);

/* The host's load, for the reports. */
void pool_load(struct pool *pool, uint32_t cpu_permille);

/* Any thread, without a lock and async-signal-safe, until pool_close() is called: whether the
 * worker's copies may act now (*ret_session: NULL allowed), and for how long: 0 if they may not. */
bool pool_may_act(const struct pool *pool, uint64_t *ret_session);
span pool_lease_left(const struct pool *pool);

size_t pool_running(const struct pool *pool);     /* copies that were started and have not ended */
size_t pool_unconfirmed(const struct pool *pool); /* results that no leader has confirmed */
uint64_t pool_session(const struct pool *pool);

/* ---- The leader's side ----------------------------------------------------------------------- */

/* The leader, while this process leads; else NULL. Borrowed until the next callback of the loop. */
const struct work_leader *pool_leader(const struct pool *pool);

#endif

/* Work that many processes share: items in, results out, each item in one place at a time.
 *
 *   struct baton_work_options options = {
 *       .size = sizeof(options), .worker = "w1", .slots = 4, .on_start = begin};
 *
 *   baton_work_open(&work, baton, "render", &options, &error);      // this process works
 *   baton_work_submit(baton, "render", NULL, "[{\"body\":\"frame 1\"}, …]", &given, &error);
 *   baton_work_wait(baton, "render", given->ids, given->count, 60000, &results, &error);
 *
 * A pool is known by its name. It has any number of workers, and one leader, which places items on
 * them and replaces what fails. Each process that has opened the pool may be its leader, unless
 * `never_leads`. To submit, to ask and to wait a process needs no part in the pool.
 *
 * An item is a job, which ends, or a service, which is to run always. A job runs at least once and
 * its result counts once; two attempts never run at the same time, as long as a program stops when
 * its right to act is over (baton_work_may_act()). An attempt that was cut off may have had
 * effects: attach its epoch to what it writes. docs/work.md has the rules.
 *
 * Objects, errors, threads, time and forked children are as in <baton.h>. Callbacks come on the
 * loop's thread and must not block; they may call what does not wait. A handle of a pool and its
 * runs may be used until the handle is closed, from any thread.
 *
 * Providers: those with state, channels and many elections: agent:, memory:, redis:, and raft: with
 * `group`; else BATON_ENOTSUP. Source: not in the seeds; docs/work.md is the guide.
 */
#ifndef BATON_WORK_H
#define BATON_WORK_H

#include <baton.h>

#ifdef __cplusplus
extern "C" {
#endif

struct baton_work; /* this process's part in a pool */

/* ---- Taking part ----------------------------------------------------------------------------- */

/* An attempt at an item, which this process runs: from on_start until baton_work_ended() returns,
 * or the handle is closed. Read only, but for `own`. A later version may add fields at the end. */
struct baton_work_run {
    const char *id;   /* of the item */
    const void *body; /* of the item, with a NUL behind it */
    size_t bytes;
    uint64_t epoch;         /* of this attempt, higher than that of each earlier one */
    uint32_t attempt;       /* from 1 */
    bool is_service;        /* it ends when it is halted; if it ends before, it is started anew */
    const void *checkpoint; /* what an earlier attempt stored last, with a NUL behind it; or NULL */
    size_t checkpoint_bytes;
    void *own; /* the program's; NULL at first */
};

/* Begins a run, for example on a thread of the program's; baton_work_ended() ends it, perhaps
 * before this returns. */
typedef void (*baton_work_start_fn)(struct baton_work *work, struct baton_work_run *run,
                                    void *userdata);

/* The run is to end, by baton_work_ended() as always, within `left_ns`, after which it may not act;
 * INT64_MAX: in its own time, while it may act. May come again, with less time. It comes because
 * the item was cancelled or moves, its time is over, or the worker leaves or loses its session. */
typedef void (*baton_work_halt_fn)(struct baton_work *work, struct baton_work_run *run,
                                   int64_t left_ns, void *userdata);

/* X(symbol, name) */
#define BATON_WORK_EVENTS(X)                                                                       \
    X(BATON_WORK_EVENT_LEADER, "pool-leader") /* name ("": none), epoch: who leads the pool */     \
    X(BATON_WORK_EVENT_LEADS, "pool-leads")   /* epoch: this process does */                       \
    X(BATON_WORK_EVENT_READY, "pool-ready")   /* epoch: and it places items from now on */         \
    X(BATON_WORK_EVENT_LEADS_NO_MORE, "pool-leads-no-more") /* epoch */                            \
    X(BATON_WORK_EVENT_WORKER_USED, "worker-used") /* name: the first items were placed on it */   \
    X(BATON_WORK_EVENT_WORKER_GONE, "worker-gone") /* name: its session is over, as is proved */   \
    X(BATON_WORK_EVENT_SESSION, "worker-session") /* epoch: this process's worker may run items */ \
    X(BATON_WORK_EVENT_SESSION_LOST, "worker-session-lost") /* epoch: all its runs are over */     \
    X(BATON_WORK_EVENT_ERROR, "pool-error") /* error: tried again, unless it says otherwise */

enum baton_work_event_type {
#define BATON_WORK_EVENT_ENUM(symbol, name) symbol,
    BATON_WORK_EVENTS(BATON_WORK_EVENT_ENUM)
#undef BATON_WORK_EVENT_ENUM
};

/* "pool-ready" …; static storage; "unknown" for any other number. */
BATON_API const char *baton_work_event_name(enum baton_work_event_type type);

/* Borrowed during the call. Fields that its type does not use are zero. A later version may add
 * fields at the end. */
struct baton_work_event {
    enum baton_work_event_type type;
    const char *name; /* of a process or worker, or NULL */
    uint64_t epoch;
    struct baton_error error;
};

typedef void (*baton_work_event_fn)(struct baton_work *work, const struct baton_work_event *event,
                                    void *userdata);

/* All but the size may be zero. Borrowed during the call. */
struct baton_work_options {
    size_t size; /* sizeof(struct baton_work_options) */
    /* The worker: its name (letters, digits, "-_.:"), which no other worker of the pool has; NULL:
     * this process runs nothing. With a name there is an on_start. */
    const char *worker;
    const char *labels; /* that it has, separated by blanks ("gpu zone=a"); NULL: none */
    uint64_t memory_mib;
    uint32_t slots; /* how much weight of items it runs at once; 0: 1 */
    uint32_t gpus;
    /* The leader, if this process comes to lead; the same in all processes. */
    bool never_leads;
    const char *strategy;       /* "least-loaded" (NULL), "round-robin", "capability", "priority" */
    int64_t report_interval_ms; /* of the workers, too; 0: 1 s */
    int64_t silence_ms;         /* a worker that is silent for so long gets nothing new; 0: 5 s */
    int64_t worker_lease_ms;    /* how long a worker may act without being heard, at most: the
                                   provider's longest lease; 0: 30 s. A longer lease is an error
                                   event (BATON_EUNSAFE) */
    int64_t keep_ms;            /* results are kept for so long; 0: a day */
    int64_t rebalance_every_ms; /* services are moved for balance, each time; 0: 30 s; negative:
                                   never */
    baton_work_start_fn on_start;
    baton_work_halt_fn on_halt;   /* NULL: the program looks at baton_work_is_halted() */
    baton_work_event_fn on_event; /* NULL: unwanted */
    void *userdata;
};

/* Takes part in the pool called `pool` (1 to 32 letters, digits, "-_.:"). Callbacks may come before
 * it returns. Waits for the loop.
 *
 * BATON_EINVAL names the option and its value; BATON_EEXIST (this process has a worker of that
 * name, or has opened the pool), BATON_ENOTSUP, BATON_ENOMEM, BATON_ECLOSED. */
BATON_API int baton_work_open(struct baton_work **ret, struct baton *baton, const char *pool,
                              const struct baton_work_options *options, struct baton_error *reterr);

/* Takes nothing new: services move, and jobs end. It returns 0 once nothing runs here and the
 * leader has all results; then close the handle. Jobs that still run after `timeout_ms` (0: at
 * once) are halted, and run again elsewhere: BATON_ETIMEDOUT, as soon as they have ended here; so
 * are services that have not moved 5 s after the last job. It
 * returns the same if no leader confirms a result by then, as without a quorum: the job has ended
 * here, and may run again. Waits. BATON_EBUSY (it is leaving), BATON_EDEADLK, BATON_ECLOSED.
 * Without a worker it returns at once. */
BATON_API int baton_work_leave(struct baton_work *work, int64_t timeout_ms,
                               struct baton_error *reterr);

/* Gives up the leadership and the worker's session, and frees the handle with all its runs: nobody
 * may use them during or after the call. What still ran is given to other workers, so it must not
 * act any more: call baton_work_leave() first. No callback comes after it has returned. Waits.
 * BATON_EDEADLK: it was called on the loop's thread, and nothing has changed. BATON_ECLOSED: in a
 * forked child. NULL is allowed. baton_stop() does the same, but for the handle and its runs, which
 * are then freed by baton_close(). */
BATON_API int baton_work_close(struct baton_work *work, struct baton_error *reterr);

/* ---- Running items --------------------------------------------------------------------------- */

/* Whether the run may act at this moment: while the worker's lease holds, by the clock, and the
 * deadline of its halt has not passed. *ret_left_ns (NULL allowed): for how long, at the least if
 * nothing is renewed; 0: it may not; INT64_MAX: without an end. No lock, no round trip: ask before
 * each effect. Any thread; async-signal-safe. False in a forked child. */
BATON_API bool baton_work_may_act(const struct baton_work_run *run, int64_t *ret_left_ns);

/* Whether the run is to end: on_halt has come, or it may not act. As cheap as that. Once it has
 * said so it goes on saying so, and what the run ends with is dropped: the item runs again,
 * elsewhere or here. */
BATON_API bool baton_work_is_halted(const struct baton_work_run *run);

/* The run has ended, and nothing of it acts any more; `run` is freed. `output` (NULL for 0 bytes,
 * at most 16 KiB, borrowed during the call) and `code` are for who waits for the item. A job that
 * did not succeed is tried again as often as its `retries` say. Waits for the loop.
 * BATON_ETOOBIG: the output; the run goes on. BATON_ECLOSED: the result is lost, as the run was. */
BATON_API int baton_work_ended(struct baton_work_run *run, bool is_success, int code,
                               const void *output, size_t bytes, struct baton_error *reterr);

/* How much is done, 0 to 1000, for the status. Waits for the loop. BATON_EINVAL; BATON_ENOENT: the
 * run was halted; BATON_ECLOSED. */
BATON_API int baton_work_progress(struct baton_work_run *run, int permille,
                                  struct baton_error *reterr);

/* Stores what the item's next attempt gets as its checkpoint, at most 120 KiB; it replaces what was
 * there. Returns once it is stored, after 30 s at the latest; on the loop's thread it begins and
 * returns 0. BATON_ELOST: a later attempt has stored one, so this one is out of date; on_halt
 * comes. BATON_EBUSY (the one before is being stored), BATON_ETOOBIG, BATON_ENOMEM, BATON_ETIMEDOUT
 * (it may still be stored), BATON_EUNAVAILABLE, BATON_ECLOSED. */
BATON_API int baton_work_checkpoint(struct baton_work_run *run, const void *data, size_t bytes,
                                    struct baton_error *reterr);

/* ---- Submitting and asking ------------------------------------------------------------------- */

/* These need no part in the pool. Each waits for at most 30 s, unless it says otherwise, and is
 * BATON_EDEADLK on the loop's thread. Each is acknowledged by the provider: what was stored is
 * carried out by the leader of then, or by a later one. Errors of all: BATON_EINVAL (names, ids),
 * BATON_ENOTSUP, BATON_EUNAVAILABLE, BATON_ETIMEDOUT, BATON_ENOMEM, BATON_ECLOSED. */

struct baton_work_submission {
    char *name;
    char **ids; /* of the items, in their order */
    size_t count;
};

/* Submits items: JSON text, an array of objects or one object, as docs/work.md has them. All
 * members are optional; "body" is the program's. An item without an "id" gets one that begins with
 * the submission's name.
 *
 *   [{"body":"frame 1","retries":2}, {"id":"camera-7","kind":"service","needs":["gpu"]}]
 *
 * `name` (1 to 40 characters of an id) makes it safe to submit again after an error: the same items
 * by the same name are submitted once. NULL: a new name. *ret (NULL allowed) is freed by
 * baton_work_submission_free(). BATON_EINVAL names the item and its member; BATON_EEXIST: other
 * items were submitted by this name. */
BATON_API int baton_work_submit(struct baton *baton, const char *pool, const char *name,
                                const char *items, struct baton_work_submission **ret,
                                struct baton_error *reterr);
BATON_API void baton_work_submission_free(struct baton_work_submission *submission);

/* Ends the item for good: a run of it is halted, and none begins. An item that has ended stays as
 * it is, and so does one that was never submitted. On the loop's thread it begins and returns 0. */
BATON_API int baton_work_cancel(struct baton *baton, const char *pool, const char *id,
                                struct baton_error *reterr);

/* Whether the worker gets nothing new, and what can move leaves it. It need not be there, and keeps
 * this over its restarts. On the loop's thread it begins and returns 0. */
BATON_API int baton_work_drain(struct baton *baton, const char *pool, const char *worker,
                               bool is_drained, struct baton_error *reterr);

enum baton_work_end {
    BATON_WORK_COMPLETED,
    BATON_WORK_FAILED, /* for the last time */
    BATON_WORK_CANCELLED,
};

/* How an item ended. Without a result (it was cancelled before an attempt ended, or its result is
 * no longer kept) all but `id` and `end` are zero. */
struct baton_work_result {
    char *id;
    enum baton_work_end end;
    int code;
    uint64_t epoch; /* of the attempt; 0: there is no result */
    int64_t began_unix_ms, ended_unix_ms;
    void *output; /* `bytes` bytes, and a NUL behind them; NULL: none */
    size_t bytes;
};

/* Waits until all of the items have ended, for `timeout_ms`; an item that nobody submitted is
 * waited for. *ret (NULL allowed) has one of each, in the order of the ids, and is freed by
 * baton_work_results_free(). BATON_EINVAL (also: an id that comes twice), BATON_ETIMEDOUT. */
BATON_API int baton_work_wait(struct baton *baton, const char *pool, const char *const *ids,
                              size_t count, int64_t timeout_ms, struct baton_work_result **ret,
                              struct baton_error *reterr);

/* The result of one item that has ended; freed by baton_work_results_free(result, 1).
 * BATON_ENOENT: it has none (yet), or no longer. */
BATON_API int baton_work_result(struct baton *baton, const char *pool, const char *id,
                                struct baton_work_result **ret, struct baton_error *reterr);
BATON_API void baton_work_results_free(struct baton_work_result *results, size_t count);

/* All items as they are stored, in the order of their ids: a JSON array of objects with "id",
 * "state" ("idle", "processing", "completed", "failed", "cancelled"), "worker", "session", "epoch",
 * "attempt", "failures", "losses", "code", "since_unix_ms", "began_unix_ms". free() it. */
BATON_API int baton_work_list(struct baton *baton, const char *pool, char **ret,
                              struct baton_error *reterr);

/* What the pool's leader says of itself and its workers, as a JSON object (docs/work.md); free()
 * it. Waits for `timeout_ms`; BATON_ETIMEDOUT: nobody led, or the leader did not reply. */
BATON_API int baton_work_status(struct baton *baton, const char *pool, int64_t timeout_ms,
                                char **ret, struct baton_error *reterr);

#ifdef __cplusplus
}
#endif

#endif

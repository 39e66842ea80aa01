/* The leader of a pool: what it knows, decides, stores and sends. A pure state machine.
 *
 *   values of the state ──┐                     ┌──▶ puts, reads   keys of the pool in the state
 *   workers' messages ────┼──▶ work_leader ─────┼──▶ messages      for workers
 *   ends of sessions ─────┤                     ├──▶ elections     of workers to contend for
 *   replies to puts ──────┘                     └──▶ deadline
 *
 * A pool's keys, below "work/POOL/":
 *
 *   ledger    mark of the ledger: "0 MARK" while it is rebuilt, "MARK" once it is complete
 *   b/NN      a bucket of the ledger (ledger.h)
 *   s/NAME    a submission (item.h); deleted when all its items have ended long ago
 *   c/ID      somebody asks to cancel the item; deleted when that is done
 *   d/WORKER  the worker gets nothing new, and what it has is moved
 *   r/ID      the result of an item, which the state drops after a time
 *   k/ID      what its attempts have stored for the next one; the first 8 bytes are their epoch
 *
 * The rules that keep two copies of an item from running at once:
 *   - a placing is stored, by compare-and-set, before the worker hears of it, and only the leader
 *     that stored it sends it. So no two leaders place an item, however late one learns that it
 *     leads no longer; it resigns when it reads what a later one wrote;
 *   - an item leaves its place when its worker reports that it has no such copy, after a message
 *     of this leader that came after every message which could start one. It is placed anew then:
 *     perhaps it has ended there, as another leader knows;
 *   - or when the worker's session is over: by the word of the election (it was granted to another
 *     session), never by silence. For that the leader contends for each worker's election, and
 *     gives it back when nothing of the worker's is left in the ledger;
 *   - an item is final once that is stored; then its worker may forget the result.
 *
 * Without the ledger (it was lost with the state, or never there) it is marked, so that another
 * loss is noticed (the mark is gone, or is another one), and rebuilt from the workers: all are
 * asked, and until each that was heard of has replied or is proved gone, nothing is placed; at the
 * latest when `collect` has passed. An item that an earlier ledger may have had waits until no
 * worker can have it any more: for `worker_lease`. The ledger is complete when all its buckets are
 * there and that time is over; a leader that finds it begun rebuilds it, too.
 */
#ifndef WORK_LEADER_H
#define WORK_LEADER_H

#include "work/ledger.h"
#include "work/placement.h"

struct work_leader; /* one thread */

struct work_leader_options {
    uint64_t epoch; /* of the leadership */
    enum placement_strategy strategy;
    bool overfills;             /* an item that fits nowhere runs where most is left */
    span report_interval;       /* of the workers */
    span silence;               /* after that without a report a worker gets nothing new */
    span collect;               /* for the workers' replies, at most, when the ledger is rebuilt */
    span worker_lease;          /* how long a worker may act without being heard, at most */
    span rebalance_every;       /* 0: never */
    uint32_t rebalance_percent; /* imbalance that is left alone */
    span keep;                  /* results and final entries are kept for this long */
    uint64_t random;            /* for the mark of a new ledger */
};

/* NULL when out of memory. */
struct work_leader *work_leader_new(const struct work_leader_options *options, instant now);
void work_leader_free(struct work_leader *leader); /* NULL allowed */

/* A worker that was heard before this process led, in the last `worker_lease`; and since when this
 * process has listened. Before work_leader_loaded(). */
void work_leader_heard(struct work_leader *leader, const char *worker, uint64_t session,
                       uint64_t ledger);
/* A watch reports a key of the pool, without "work/POOL/". data NULL: it is not there (any more).
 * Odd values are counted and left alone. */
void work_leader_value(struct work_leader *leader, const char *key, const void *data, size_t bytes,
                       uint64_t revision, instant now, int64_t now_unix_ms);
/* The same, of the list at the beginning or as the reply to a read: no watch need have it. */
void work_leader_read(struct work_leader *leader, const char *key, const void *data, size_t bytes,
                      uint64_t revision, instant now, int64_t now_unix_ms);
/* The list is complete. */
void work_leader_loaded(struct work_leader *leader, instant now, int64_t now_unix_ms);
/* A report or result. A report that comes before all is loaded is kept until then: workers are
 * asked as soon as the ledger's mark is known. */
void work_leader_hear(struct work_leader *leader, const struct work_message *message, instant now,
                      int64_t now_unix_ms);
/* The worker's election has this epoch now, so its sessions below are over. `is_ours`: granted to
 * this process, so that its session `epoch` has no worker. */
void work_leader_session(struct work_leader *leader, const char *worker, uint64_t epoch,
                         bool is_ours, instant now, int64_t now_unix_ms);
/* The reply to a put. On BATON_ECONFLICT the leader reads the key anew. */
void work_leader_stored(struct work_leader *leader, const char *key, int code, uint64_t revision,
                        instant now, int64_t now_unix_ms);
void work_leader_tick(struct work_leader *leader, instant now, int64_t now_unix_ms);

enum work_output_type {
    WORK_PUT,    /* .key, .data (NULL: delete), .bytes, .revision, .lifetime */
    WORK_READ,   /* .key: reply by work_leader_read() */
    WORK_SEND,   /* .worker (NULL: all), .data, .bytes: a message */
    WORK_ENTER,  /* .worker: contend for its election */
    WORK_LEAVE,  /* .worker: do so no more, and give it up if it is ours */
    WORK_RESIGN, /* its last: give the leadership up. A later leader has followed; or (.is_lost) the
                    state has lost the ledger, and the next leader rebuilds it; or there is no
                    memory */
};

/* Borrowed until the next call. */
struct work_output {
    enum work_output_type type;
    const char *key;
    const char *worker;
    const void *data;
    size_t bytes;
    uint64_t revision; /* UINT64_MAX: any */
    span lifetime;     /* 0: for ever */
    bool is_lost;
};

bool work_leader_next_output(struct work_leader *leader, instant now, int64_t now_unix_ms,
                             struct work_output *ret);
instant work_leader_deadline(const struct work_leader *leader); /* INSTANT_NEVER: none */

/* X(name, text): counters since this leader began. */
#define WORK_COUNTERS(X)                                                                           \
    X(assigned, "items placed on a worker")                                                        \
    X(completed, "items completed")                                                                \
    X(failed, "items failed for the last time")                                                    \
    X(retried, "attempts that failed and are repeated")                                            \
    X(lost, "attempts that ended without a result, mostly with their worker's session")            \
    X(migrations, "services moved to another worker")                                              \
    X(cancelled, "items cancelled")                                                                \
    X(timeouts, "attempts that took too long")                                                     \
    X(failed_workers, "workers whose session ended while they had items")                          \
    X(refused_results, "results of an earlier placing")                                            \
    X(adopted_claims, "claims that were newer than the ledger")                                    \
    X(stale_claims, "claims of an earlier placing")                                                \
    X(odd_values, "values or messages that could not be read")                                     \
    X(conflicts, "writes that another leader's write preceded")

struct work_counters {
#define WORK_COUNTER(name, text) uint64_t name;
    WORK_COUNTERS(WORK_COUNTER)
#undef WORK_COUNTER
};

const struct work_counters *work_leader_counters(const struct work_leader *leader);
const struct ledger *work_leader_ledger(const struct work_leader *leader);
/* Whether items are placed: the list is complete, and so is what workers were asked for. */
bool work_leader_is_ready(const struct work_leader *leader);
/* Whether what waited for a leader is placed and stored, or has had its time: until then, other
 * requests for the state are in its way. */
bool work_leader_is_settled(const struct work_leader *leader);
/* A new object for people and programs: workers, counts, counters, processing times, items without
 * a place and why; NULL when out of memory. */
json_t *work_leader_status(const struct work_leader *leader, instant now);

#endif

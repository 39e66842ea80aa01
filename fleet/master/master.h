/* The master of a fleet: while this process leads the election of the fleet's name, it keeps the
 * assignments, the owners and the list of what is unplaced as plan/plan.h and plan/spread.h say,
 * and the workers that discovery finds.
 *
 *   state ─┐  what has changed                       assigned/WORKER ┐
 *   table ─┼──────────────────▶ master ── plan ──▶   owners          ├─ compare-and-set ─▶ state
 *   others ┘                      ▲                  unplaced        ┘
 *                             discovery              worker/WORKER
 *
 *            ACQUIRED            the state is ready           each worker was heard of, or
 *   FOLLOWS ─────────▶ WAITS ─────────────────▶ names owners ──────────────────────────▶ PLANS
 *      ▲                                              MASTER_PATIENCE has passed           │
 *      └── LOST ─────────────────────── RETIRED ◀──────────── a value with a higher epoch ─┘
 *
 * A plan is made at the end of the loop's turn in which something changed; while much changes, as
 * often as leaves two thirds of the time to others, and at most each MASTER_GAP. Each
 * MASTER_BALANCE_EVERY a plan may also move what balances the workers.
 *
 * Writes of one plan come in two rounds: first the lists that only lose something, then, if
 * all of these were stored, those that get something. So what an offline worker had is out of its
 * list before another worker gets it. The next plan waits for the last of them.
 *
 * Two masters: each writes at the revision that it has read, so one of them fails, and the first
 * thing that a new master writes is `owners`, with its epoch, by which the other one knows. What
 * an old master wrote a moment ago to another key than the new one did is seen by the new one,
 * which repairs it: a subscription that two online workers have leaves one of them.
 *
 * MASTER_PATIENCE counts from when the process began; if no worker of the fleet has a list yet,
 * from when the latest worker was registered.
 *
 * A worker of which nothing was heard yet keeps what it has, and gets nothing; after MASTER_SILENCE
 * it counts as offline. Later the table knows; but as long as a worker is marked as online, of
 * which the table knows that it is not, it keeps what it has, also for MASTER_SILENCE at most
 * (fleet/workers/claim.h).
 *
 * Threads: all on the loop's thread of the state's member.
 */
#ifndef FLEET_MASTER_MASTER_H
#define FLEET_MASTER_MASTER_H

#include "fleet/plan/plan.h"
#include "fleet/state/state.h"
#include "fleet/workers/table.h"

struct master; /* opaque */

#define MASTER_PATIENCE      SPAN_S(2)
#define MASTER_SILENCE       SPAN_S(15)
#define MASTER_GAP           SPAN_MS(5)
#define MASTER_BALANCE_EVERY SPAN_S(5)
#define MASTER_TWINS_LAST    SPAN_S(60) /* longer than a dead process's entry on Redis */
#define MASTER_LEAVES_WITHIN                                                                       \
    SPAN_S(10) /* then what leaves a worker counts as gone, with an alarm */

struct master_config {
    struct fleet_state *state; /* this and the table outlive the master */
    struct worker_table *table;
    struct plan_options plan;       /* `balances` is the master's */
    const char *const *worker_urls; /* as discovery.h has them; copied */
    size_t worker_count;
    span resolve_every; /* 0: the default of discovery.h */
    span twins_last;    /* until two processes of one name are reported; 0: MASTER_TWINS_LAST */
    /* Steals fields.
     *
     *   leader-changed {leader, epoch}           member-joined, member-left {process}
     *   election-failed {error}                  why this process cannot be master now
     *   process-twice {process, reason}          two processes have this name, for a minute
     *   not-placed {count, subscription, reason} so many have no worker now; one as an example
     *   worker-not-in-sync {worker, reason}      it did not let go in time
     *   master-superseded {key, epoch}           another master has written since
     *   master-failed {reason}                   a write failed, and is tried again
     *   discovery-failed {url, reason} */
    void (*on_event)(void *userdata, const char *name, json_t *fields);
    /* An error of the provider, which may go on; borrowed. */
    void (*on_error)(void *userdata, const struct baton_error *error);
    void *userdata;
};

/* X(field, what it counts) */
#define MASTER_COUNTERS(X)                                                                         \
    X(plans, "plans that were made")                                                               \
    X(plan_us, "microseconds that they took")                                                      \
    X(writes, "values that were stored")                                                           \
    X(conflicts, "writes that failed because the key had changed")                                 \
    X(failures, "writes that failed otherwise")                                                    \
    X(moves, "subscriptions that were moved from one online worker to another")                    \
    X(overdue, "workers that did not let go in time")

struct master_counters {
#define MASTER_COUNTER(field, text) uint64_t field;
    MASTER_COUNTERS(MASTER_COUNTER)
#undef MASTER_COUNTER
};

/* Joins the election of the fleet's name. Events may come before this returns, after *ret was
 * written. BATON_EINVAL: a URL of workers; BATON_ENOMEM; or as candidacy_begin(). */
int master_open(struct master **ret, const struct master_config *config,
                struct baton_error *reterr);
/* Once what it writes is answered, resigns, leaves the election, and frees the master before
 * `closed`, which comes once, perhaps before this returns; no other callback comes. */
void master_close(struct master *master, void (*closed)(void *userdata), void *userdata);

bool master_leads(const struct master *master, uint64_t *ret_epoch); /* NULL allowed */
struct election *master_election(const struct master *master);
/* Names of processes of the fleet that are alive, as this one knows; 0: not known yet. */
size_t master_process_count(const struct master *master);
const struct master_counters *master_counters(const struct master *master);
/* Whether the next plan can move the subscription, with all of its camera, as far as this process
 * knows: so it holds for a moment, and where two cameras have one URL the plan may still refuse.
 * BATON_EBUSY says why not. */
int master_check_move(const struct master *master, const struct fleet_object *subscription,
                      const struct fleet_worker *to, struct baton_error *reterr);

#endif

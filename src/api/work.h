/* What lies behind <baton/work.h>: pool/ with handles for any thread.
 *
 *   work.c         taking part: open, leave, close; the loop's end
 *   work_run.c     items that run here
 *   work_client.c  submitting and asking
 *   work_wait.c    waiting for ends
 *
 * As elsewhere in this folder the loop's thread owns all of it. What other threads read without a
 * call is the lease, which the provider publishes into the handle, and when a run was halted.
 */
#ifndef API_WORK_H
#define API_WORK_H

#include "api/call.h"
#include "pool/pool.h"
#include "provider/lease_cell.h"

#include <baton/work.h>

struct run;       /* opaque */
struct work_wait; /* opaque: one that waits for ends */

/* It stays in the baton's list until it is freed. */
struct baton_work {
    struct baton_work *next;
    struct baton *baton;
    struct pool *pool; /* NULL: it is closed */
    struct lease_watch lease;
    struct run *runs;     /* by the items' ids */
    struct call *leaving; /* these two wait for the pool */
    struct call *closing;
    baton_work_start_fn on_start;
    baton_work_halt_fn on_halt;
    baton_work_event_fn on_event;
    void *userdata;
};

/* ---- work.c ---------------------------------------------------------------------------------- */

/* On the loop: ends all that this baton does in pools, and then calls `stopped`, perhaps before
 * this returns. Not from a callback of <baton/work.h>. */
void works_stop(struct baton *baton, void (*stopped)(struct baton *baton));
/* Something that it waits for has ended. */
void works_settle(struct baton *baton);
/* The handles that are left; after the loop has ended. */
void works_free(struct baton *baton);

/* BATON_ECLOSED in a forked child, BATON_EDEADLK on the loop's thread. */
int work_may_wait(const struct baton *baton, struct baton_error *reterr);

/* ---- work_run.c ------------------------------------------------------------------------------ */

/* As those of struct pool_calls, with the handle. */
void run_start(void *userdata, const struct pool_start *start);
void run_halt(void *userdata, const char *id, uint64_t epoch, instant deadline);
/* Before the pool is closed: what waits for it to store a checkpoint has ended. */
void runs_end(struct baton_work *work);
void runs_free(struct baton_work *work);

/* ---- work_wait.c ----------------------------------------------------------------------------- */

/* On the loop. */
void work_waits_stop(struct baton *baton);
/* BATON_ENOMEM; `ret` then has nothing to free. */
int work_result_show(struct baton_work_result *ret, const char *id, enum baton_work_end end,
                     const struct work_result *result);

#endif

/* Items that run in this process: their handles, from start to end. */
#include "api/work.h"

#include "api/perform.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uthash.h>

struct run {
    struct baton_work_run shown; /* first: what the program has */
    struct baton_work *work;
    _Atomic int64_t halt_by_ns; /* a point in time; INT64_MAX: none */
    atomic_bool is_halted;
    struct call *storing; /* its checkpoint; NULL: none is being stored */
    int64_t began_unix_ms;
    UT_hash_handle hh;
    char bytes[]; /* what `shown` points to */
};

static const struct run *run_of(const struct baton_work_run *shown)
{
    return (const struct run *)shown;
}

/* ---- Beginning ------------------------------------------------------------------------------- */

/* By the wall clock: for people. */
static int64_t unix_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Copies them, with a NUL behind them. */
static char *put_bytes(char **at, const void *bytes, size_t count)
{
    char *copy = *at;

    if (count > 0) {
        memcpy(copy, bytes, count);
    }
    copy[count] = '\0';
    *at += count + 1;
    return copy;
}

static struct run *run_new(struct baton_work *work, const struct pool_start *start)
{
    const struct work_item *item = start->item;
    size_t id_bytes = strlen(item->id);
    struct run *run =
        malloc(sizeof(*run) + id_bytes + item->body_bytes + start->checkpoint_bytes + 3);
    char *at;

    if (!run) {
        return NULL;
    }
    memset(run, 0, sizeof(*run));
    at = run->bytes;
    run->work = work;
    run->began_unix_ms = unix_ms();
    atomic_init(&run->halt_by_ns, INT64_MAX);
    run->shown = (struct baton_work_run){
        .id = put_bytes(&at, item->id, id_bytes),
        .body = put_bytes(&at, item->body, item->body_bytes),
        .bytes = item->body_bytes,
        .epoch = start->epoch,
        .attempt = start->attempt,
        .is_service = item->kind == WORK_SERVICE,
    };
    if (start->checkpoint) {
        run->shown.checkpoint = put_bytes(&at, start->checkpoint, start->checkpoint_bytes);
        run->shown.checkpoint_bytes = start->checkpoint_bytes;
    }
    return run;
}

/* Without memory the attempt has failed. */
void run_start(void *userdata, const struct pool_start *start)
{
    struct baton_work *work = userdata;
    struct run *run = run_new(work, start);

    if (run) {
        HASH_ADD_KEYPTR(hh, work->runs, run->shown.id, strlen(run->shown.id), run);
    }
    if (!run || !run->hh.tbl) {
        const struct work_result result = {
            .id = start->item->id, .epoch = start->epoch, .code = BATON_ENOMEM};

        free(run);
        (void)pool_ended(work->pool, &result);
        return;
    }
    work->baton->work_calls++;
    work->on_start(work, &run->shown, work->userdata);
    work->baton->work_calls--;
}

/* ---- Halting --------------------------------------------------------------------------------- */

static void halt(struct run *run, instant deadline)
{
    if (deadline.ns < atomic_load(&run->halt_by_ns)) {
        atomic_store(&run->halt_by_ns, deadline.ns);
    }
    atomic_store(&run->is_halted, true);
}

void run_halt(void *userdata, const char *id, uint64_t epoch, instant deadline)
{
    struct baton_work *work = userdata;
    bool is_at_leisure = deadline.ns == INSTANT_NEVER.ns;
    span left = instant_since(deadline, clock_now());
    struct run *run;

    HASH_FIND_STR(work->runs, id, run);
    if (!run || run->shown.epoch != epoch) {
        return;
    }
    halt(run, deadline);
    if (work->on_halt) {
        work->baton->work_calls++;
        work->on_halt(work, &run->shown,
                      is_at_leisure ? INT64_MAX
                      : left.ns > 0 ? left.ns
                                    : 0,
                      work->userdata);
        work->baton->work_calls--;
    }
}

/* The lease first: one of a later session is published after the halt that ended this one, and is
 * not taken for the run's own. */
bool baton_work_may_act(const struct baton_work_run *shown, int64_t *ret_left_ns)
{
    const struct run *run = run_of(shown);
    int64_t left_ns = lease_watch_left(&run->work->lease).ns;
    int64_t halt_by_ns = atomic_load(&run->halt_by_ns);

    if (halt_by_ns != INT64_MAX) {
        int64_t until_halt_ns = halt_by_ns - clock_now().ns;
        left_ns = until_halt_ns < left_ns ? until_halt_ns : left_ns;
    }
    if (left_ns < 0 || getpid() != run->work->baton->owner) {
        left_ns = 0;
    }
    if (ret_left_ns) {
        *ret_left_ns = left_ns;
    }
    return left_ns > 0;
}

/* Once for all: the lease that is over by the clock may yet be renewed, and then the library takes
 * the run for one that did all of its work. */
bool baton_work_is_halted(const struct baton_work_run *shown)
{
    struct run *run = (struct run *)shown;

    if (getpid() != run->work->baton->owner) {
        return true;
    }
    if (!baton_work_may_act(shown, NULL)) {
        atomic_store(&run->is_halted, true);
    }
    return atomic_load(&run->is_halted);
}

/* ---- Requests of a run ----------------------------------------------------------------------- */

struct run_call {
    struct call base;
    struct run *run;
    struct work_result result; /* borrowed, as the caller waits without a limit */
    int permille;
    uint8_t *data; /* of a checkpoint: a copy */
    size_t bytes;
};

static void drop_run_call(struct call *base)
{
    free(((struct run_call *)base)->data);
}

/* On failure *reterr is written. */
static struct run_call *run_call_new(struct run *run, void (*body)(struct call *call),
                                     struct baton_error *reterr)
{
    struct run_call *call = call_new(run->work->baton, sizeof(*call), body);

    if (!call) {
        (void)error_set(reterr, BATON_ENOMEM, "item \"%s\": out of memory", run->shown.id);
        return NULL;
    }
    call->base.drop = drop_run_call;
    call->run = run;
    return call;
}

/* A further attempt may begin in pool_ended(): so this one leaves the table before. */
static void run_ended(struct call *base)
{
    struct run_call *call = (struct run_call *)base;
    struct run *run = call->run;

    HASH_DEL(run->work->runs, run);
    if (atomic_load(&run->is_halted)) {
        (void)pool_gave_up(run->work->pool, run->shown.id, run->shown.epoch);
    } else {
        (void)pool_ended(run->work->pool, &call->result);
    }
    free(run);
    call_finish(base, BATON_OK, NULL);
}

int baton_work_ended(struct baton_work_run *shown, bool is_success, int code, const void *output,
                     size_t bytes, struct baton_error *reterr)
{
    struct run *run = (struct run *)shown;
    struct run_call *call;
    int r = check_owner(run->work->baton, reterr);

    if (r == BATON_OK && bytes > WORK_OUTPUT_MAX) {
        r = error_set(reterr, BATON_ETOOBIG, "item \"%s\": an output of %zu bytes: at most %d",
                      shown->id, bytes, WORK_OUTPUT_MAX);
    }
    if (r != BATON_OK) {
        return r;
    }
    call = run_call_new(run, run_ended, reterr);
    if (!call) {
        return BATON_ENOMEM;
    }
    call->result = (struct work_result){.id = (char *)shown->id,
                                        .epoch = shown->epoch,
                                        .is_success = is_success,
                                        .code = code,
                                        .began_unix_ms = run->began_unix_ms,
                                        .ended_unix_ms = unix_ms(),
                                        .output = (uint8_t *)output,
                                        .output_bytes = bytes};
    r = perform(&call->base, INT64_MAX, BATON_EDEADLK, reterr);
    call_unref(&call->base);
    return r;
}

static void run_progress(struct call *base)
{
    struct run_call *call = (struct run_call *)base;
    struct baton_error error = {0};
    int code = pool_progress(call->run->work->pool, call->run->shown.id, call->permille, NULL);

    (void)error_set(&error, code, "item \"%s\": it was halted", call->run->shown.id);
    call_finish(base, code, &error);
}

int baton_work_progress(struct baton_work_run *shown, int permille, struct baton_error *reterr)
{
    struct run *run = (struct run *)shown;
    struct run_call *call;
    int code = check_owner(run->work->baton, reterr);

    if (code == BATON_OK && (permille < 0 || permille > WORK_PERMILLE_MAX)) {
        code = error_set(reterr, BATON_EINVAL, "item \"%s\": a progress of %d: must be 0 to %d",
                         shown->id, permille, WORK_PERMILLE_MAX);
    }
    if (code != BATON_OK) {
        return code;
    }
    call = run_call_new(run, run_progress, reterr);
    if (!call) {
        return BATON_ENOMEM;
    }
    call->permille = permille;
    code = perform(&call->base, INT64_MAX, BATON_EDEADLK, reterr);
    call_unref(&call->base);
    return code;
}

/* ---- Checkpoints ----------------------------------------------------------------------------- */

/* Before the run is freed: at the latest within pool_ended(). */
static void on_stored(void *userdata, int code, const struct baton_error *error)
{
    struct run_call *call = userdata;

    call->run->storing = NULL;
    call_finish(&call->base, code, error);
}

static void run_checkpoint(struct call *base)
{
    struct run_call *call = (struct run_call *)base;
    struct run *run = call->run;
    struct baton_error error = {0};
    struct call *before = run->storing;
    int code;

    run->storing = base;
    code = pool_checkpoint(run->work->pool, run->shown.id, run->shown.epoch, call->data,
                           call->bytes, on_stored, call, &error);
    if (code != BATON_OK) {
        run->storing = before;
        call_finish(base, code, &error);
    }
}

int baton_work_checkpoint(struct baton_work_run *shown, const void *data, size_t bytes,
                          struct baton_error *reterr)
{
    struct run *run = (struct run *)shown;
    struct run_call *call;
    int code = check_owner(run->work->baton, reterr);

    if (code == BATON_OK && bytes > POOL_CHECKPOINT_MAX) {
        code = error_set(reterr, BATON_ETOOBIG, "checkpoint of \"%s\": %zu bytes: at most %d",
                         shown->id, bytes, POOL_CHECKPOINT_MAX);
    }
    if (code != BATON_OK) {
        return code;
    }
    call = run_call_new(run, run_checkpoint, reterr);
    if (!call) {
        return BATON_ENOMEM;
    }
    call->bytes = bytes;
    call->data = malloc(bytes + 1);
    if (!call->data) {
        code = error_set(reterr, BATON_ENOMEM, "item \"%s\": out of memory", shown->id);
    } else {
        if (bytes > 0) {
            memcpy(call->data, data, bytes);
        }
        code = perform(&call->base, BATON_TIMEOUT_DEFAULT, BATON_OK, reterr);
    }
    call_unref(&call->base);
    return code;
}

/* ---- The end of the handle ------------------------------------------------------------------- */

void runs_end(struct baton_work *work)
{
    const struct baton_error closed = {BATON_ECLOSED, "the handle was closed: open another one"};

    for (struct run *run = work->runs; run; run = run->hh.next) {
        if (run->storing) {
            call_finish(run->storing, BATON_ECLOSED, &closed);
        }
    }
}

void runs_free(struct baton_work *work)
{
    struct run *run = work->runs;

    HASH_CLEAR(hh, work->runs);
    while (run) {
        struct run *next = run->hh.next;

        free(run);
        run = next;
    }
}

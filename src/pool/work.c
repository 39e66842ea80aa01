/* This process's worker: the core work/worker.h, with a session and the copies that run.
 *
 *              acquired                    jeopardy, drain, the end of leaving
 *   WITHOUT ─────────────▶ WITH A SESSION ────────────────────────────────▶ SUSPENDED
 *      ▲                        ▲   │ lost                                     │  │
 *      │                        └───┼─ the lease was renewed, no copy runs ────┘  │
 *      └────────────────────────────┴──────────── lost, handed over ──────────────┘
 *
 * A suspended worker has no session as far as the core knows: all copies are halted, with the end
 * of the lease as their deadline, and the leader places them elsewhere.
 */
#include "pool/pool_int.h"

#include "member/feed.h"
#include "member/handover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RELIEF_MS = 20, /* interval of the checks whether a suspended worker may go on */
    MOVE_MS = 5000, /* in which services move, once the jobs of a worker that leaves have ended */
};

/* Before the end of the lease: the kernel needs a moment to end a process. A tenth of what is left,
 * and 50 ms at most, as `baton run` has it. */
#define HALT_MARGIN_MAX SPAN_MS(50)

struct worker {
    struct pool *pool;
    struct work_worker *core;
    struct candidacy candidacy;
    struct feed *own, *all; /* channels */
    struct copy *copies;    /* by id */
    uint64_t serial;        /* of the copy that came last */
    uint64_t session;       /* granted and not lost; 0: none */
    uint64_t latest;        /* epoch of the worker's election that is known here, of anybody */
    bool is_suspended;
    instant halt_by;     /* of what is halted now */
    instant doubted_end; /* of the lease that was in jeopardy last */
    bool is_held;        /* a hand-over waits for the copies */
    bool is_ordering;    /* orders are being carried out */
    bool is_leaving;
    bool is_given_up; /* the end of leaving: nothing starts here any more */
    instant leave_by;
    instant move_by; /* INSTANT_NEVER: it does not wait for services alone */
    void (*left)(void *userdata, int code);
    void *left_userdata;
    char name[BATON_NAME_MAX];
};

static void drive(struct pool *pool);

/* ---- Copies ---------------------------------------------------------------------------------- */

struct copy *worker_copy(const struct pool *pool, const char *id)
{
    struct copy *copy = NULL;

    if (pool->worker) {
        HASH_FIND_STR(pool->worker->copies, id, copy);
    }
    return copy;
}

static void copy_free(struct worker *worker, struct copy *copy)
{
    HASH_DEL(worker->copies, copy);
    work_item_unref(copy->item);
    free(copy->storing);
    free(copy);
}

/* Nothing of it runs. `result` NULL: it has none. */
static void end_copy(struct pool *pool, struct copy *copy, const struct work_result *result)
{
    checkpoint_drop(copy);
    if (result) {
        work_worker_ended(pool->worker->core, result, clock_now());
    } else {
        work_worker_gave_up(pool->worker->core, copy->id, copy->epoch);
    }
    copy_free(pool->worker, copy);
}

static void end_unstarted(struct pool *pool, struct copy *copy)
{
    const struct work_result result = {.id = copy->id, .epoch = copy->epoch};

    end_copy(pool, copy, &result);
}

void worker_start(struct pool *pool, struct copy *copy, const void *checkpoint, size_t bytes)
{
    const struct pool_start start = {.item = copy->item,
                                     .epoch = copy->epoch,
                                     .attempt = copy->attempt,
                                     .checkpoint = checkpoint,
                                     .checkpoint_bytes = bytes};

    copy->is_started = true;
    pool->calls.on_start(pool->calls.userdata, &start);
}

/* A first attempt of an item whose id is new has no checkpoint. */
static void start(struct pool *pool, const struct work_order *order)
{
    struct worker *worker = pool->worker;
    struct copy *copy = calloc(1, sizeof(*copy));

    if (copy) {
        memcpy(copy->id, order->item->id, strlen(order->item->id) + 1);
        HASH_ADD_STR(worker->copies, id, copy);
    }
    if (!copy || !copy->hh.tbl) {
        const struct work_result result = {.id = order->item->id, .epoch = order->epoch};

        free(copy);
        work_worker_ended(worker->core, &result, clock_now());
        return;
    }
    copy->item = work_item_ref(order->item);
    copy->epoch = order->epoch;
    copy->attempt = order->attempt;
    copy->serial = ++worker->serial;
    copy->read_at = INSTANT_NEVER;
    if (copy->item->is_unique && copy->attempt == 1) {
        worker_start(pool, copy, NULL, 0);
    } else {
        checkpoint_read(pool, copy);
    }
}

static void halt(struct pool *pool, struct copy *copy, instant deadline)
{
    if (!copy->is_started) {
        end_unstarted(pool, copy);
    } else if (!copy->is_halted || instant_before(deadline, copy->halt_by)) {
        copy->is_halted = true;
        copy->halt_by = deadline;
        pool->calls.on_halt(pool->calls.userdata, copy->id, copy->epoch, deadline);
    }
}

void worker_halt(struct pool *pool, struct copy *copy)
{
    halt(pool, copy, pool->worker->halt_by);
}

static struct copy *to_halt(const struct worker *worker)
{
    struct copy *copy = worker->copies;

    while (copy && copy->is_halted && !instant_before(worker->halt_by, copy->halt_by)) {
        copy = copy->hh.next;
    }
    return copy;
}

/* Each call may end further copies. */
static void halt_all(struct pool *pool)
{
    struct copy *copy;

    while (!pool->is_closing && (copy = to_halt(pool->worker))) {
        halt(pool, copy, pool->worker->halt_by);
    }
}

/* ---- What the core wants --------------------------------------------------------------------- */

static void send_messages(struct pool *pool)
{
    struct buffer message;

    buffer_init(&message, WORK_MESSAGE_MAX);
    while (work_worker_next_message(pool->worker->core, &message)) {
        if (!message.failed) {
            pool_publish(pool, NULL, message.data, message.bytes);
        }
        buffer_clear(&message);
    }
    buffer_fini(&message);
}

static void carry_out(struct pool *pool, const struct work_order *order)
{
    struct copy *copy = worker_copy(pool, order->id);

    if (order->type == WORK_START) {
        start(pool, order);
    } else if (copy && copy->epoch == order->epoch) {
        worker_halt(pool, copy);
    }
}

/* ---- Suspending ------------------------------------------------------------------------------ */

static void tell_of(struct pool *pool, enum pool_event_type type, uint64_t epoch)
{
    pool_tell(pool, &(struct pool_event){.type = type, .name = pool->worker->name, .epoch = epoch});
}

static instant end_of_lease(const struct worker *worker)
{
    return instant_add(clock_now(), election_lease_left(worker->candidacy.election));
}

static void suspend(struct pool *pool, instant deadline)
{
    struct worker *worker = pool->worker;
    instant now = clock_now();
    span left = election_lease_left(worker->candidacy.election);
    span margin = {left.ns / 10 < HALT_MARGIN_MAX.ns ? left.ns / 10 : HALT_MARGIN_MAX.ns};
    instant limit = instant_add(now, SPAN_NS(left.ns - margin.ns));

    worker->is_suspended = true;
    worker->halt_by = instant_min(deadline, limit);
    work_worker_session(worker->core, 0, now);
    halt_all(pool);
    drive(pool);
}

/* The reason to suspend is over, and nothing runs: a hand-over failed, or the lease was renewed. */
static bool may_resume(const struct worker *worker)
{
    return worker->is_suspended && !worker->copies && !worker->is_given_up &&
           worker->session != 0 && !worker->is_held &&
           !handover_is_going(worker->candidacy.election) &&
           election_is_leader(worker->candidacy.election, NULL) &&
           instant_before(worker->doubted_end, end_of_lease(worker));
}

static void begin_session(struct pool *pool)
{
    struct worker *worker = pool->worker;
    instant now = clock_now();

    worker->is_suspended = false;
    worker->halt_by = INSTANT_NEVER;
    work_worker_session(worker->core, worker->session, now);
    drive(pool);
}

/* A leader that has lost the ledger relies on it. A lease without end is none of a provider that
 * can lose one. */
static void check_lease(struct pool *pool)
{
    span lease = pool_lease_left(pool), most = pool->leader_options.worker_lease;
    struct baton_error error;

    if (lease.ns > most.ns && lease.ns != INT64_MAX) {
        (void)error_set(&error, BATON_EUNSAFE,
                        "worker %s: its lease is %.3f s, and worker-lease %.3f s: if the state is "
                        "lost, its items may run twice. Give all processes of the pool the longest "
                        "lease",
                        pool->worker->name, (double)lease.ns / 1e9, (double)most.ns / 1e9);
        pool_complain(pool, &error);
    }
}

static void on_acquired(struct pool *pool, uint64_t epoch)
{
    struct worker *worker = pool->worker;

    check_lease(pool);
    worker->session = epoch;
    worker->doubted_end = INSTANT_PAST;
    tell_of(pool, POOL_SESSION, epoch);
    if (!worker->is_given_up) {
        begin_session(pool);
    }
}

/* Copies that could not be ended in time have no deadline any more. */
static void on_lost(struct pool *pool)
{
    struct worker *worker = pool->worker;
    uint64_t session = worker->session;
    instant now = clock_now();

    if (session == 0) {
        return;
    }
    worker->session = 0;
    worker->is_suspended = worker->is_held = false;
    worker->halt_by = now;
    work_worker_session(worker->core, 0, now);
    halt_all(pool);
    tell_of(pool, POOL_SESSION_LOST, session);
    drive(pool);
}

static void on_drain(struct pool *pool, const struct baton_event *event)
{
    struct worker *worker = pool->worker;

    suspend(pool, instant_add(clock_now(), SPAN_NS(event->lease_left_ns)));
    if (worker->copies && !worker->is_held) {
        worker->is_held = true;
        handover_hold(worker->candidacy.election);
    }
}

static void note_latest(struct pool *pool, uint64_t epoch)
{
    if (epoch > pool->worker->latest) {
        pool->worker->latest = epoch;
        worker_tell_lead(pool);
    }
}

static void on_event(struct candidacy *candidacy, const struct baton_event *event)
{
    struct worker *worker = CANDIDACY_OF(struct worker, candidacy, candidacy);
    struct pool *pool = worker->pool;

    switch (event->type) {
    case BATON_EVENT_ACQUIRED:
        on_acquired(pool, event->epoch);
        note_latest(pool, event->epoch);
        break;
    case BATON_EVENT_LEADER:
        note_latest(pool, event->epoch);
        break;
    case BATON_EVENT_JEOPARDY:
        worker->doubted_end = end_of_lease(worker);
        suspend(pool, INSTANT_NEVER);
        break;
    case BATON_EVENT_DRAIN:
        on_drain(pool, event);
        break;
    case BATON_EVENT_LOST:
    case BATON_EVENT_STOPPED:
        on_lost(pool);
        break;
    case BATON_EVENT_ELECTION_FAILED:
        pool_tell_wait(pool, event);
        break;
    case BATON_EVENT_ERROR:
        if (event->error.code == BATON_ETIMEDOUT) { /* a hand-over failed */
            worker->is_held = false;
        }
        pool_complain(pool, &event->error);
        break;
    default:
        break;
    }
}

void worker_tell_lead(struct pool *pool)
{
    const struct worker *worker = pool->worker;

    if (worker->latest != 0) {
        lead_session(pool, worker->name, worker->latest, false);
    }
}

/* ---- Leaving --------------------------------------------------------------------------------- */

/* A service does not end by itself, and may have nowhere to move. One that is halted moves. */
static void limit_services(struct worker *worker)
{
    bool waits = worker->copies && worker->is_leaving && !worker->is_given_up;

    for (const struct copy *copy = worker->copies; copy && waits; copy = copy->hh.next) {
        waits = copy->item->kind == WORK_SERVICE && !copy->is_halted;
    }
    if (!waits) {
        worker->move_by = INSTANT_NEVER;
    } else if (!instant_before(worker->move_by, INSTANT_NEVER)) {
        worker->move_by = instant_add(clock_now(), SPAN_MS(MOVE_MS));
    }
}

/* From then on it has no session as far as the core knows: an item that the leader placed here
 * before it heard of the leaving would start, and its program waits for none any more. */
static void finish_leaving(struct pool *pool)
{
    struct worker *worker = pool->worker;
    bool is_idle = worker->is_given_up ? !worker->copies
                                       : work_worker_running(worker->core) == 0 &&
                                             work_worker_results(worker->core) == 0;
    int code = worker->is_given_up ? BATON_ETIMEDOUT : BATON_OK;
    void (*left)(void *userdata, int code) = worker->left;

    if (worker->is_leaving && left && is_idle) {
        worker->left = NULL;
        worker->is_given_up = true;
        worker->leave_by = INSTANT_NEVER;
        work_worker_session(worker->core, 0, clock_now());
        left(worker->left_userdata, code);
    }
}

int pool_leave(struct pool *pool, instant deadline, void (*left)(void *userdata, int code),
               void *userdata, struct baton_error *reterr)
{
    struct worker *worker = pool->worker;
    instant now = clock_now();

    if (!worker) {
        left(userdata, BATON_OK);
        return BATON_OK;
    }
    if (worker->is_leaving) {
        return error_set(reterr, BATON_EBUSY, "pool \"%s\": worker \"%s\" is leaving already",
                         pool->name, worker->name);
    }
    worker->is_leaving = true;
    worker->leave_by = deadline;
    worker->left = left;
    worker->left_userdata = userdata;
    work_worker_leave(worker->core, now);
    drive(pool);
    return BATON_OK;
}

/* Without a session the copies do not count as failed: the leader finds that they are gone. The
 * election is held on, so they have time to end. */
static void give_up(struct pool *pool, instant now)
{
    struct worker *worker = pool->worker;

    worker->is_given_up = true;
    worker->leave_by = worker->move_by = INSTANT_NEVER;
    work_worker_session(worker->core, 0, now);
    halt_all(pool);
}

void pool_leave_now(struct pool *pool)
{
    struct worker *worker = pool->worker;

    if (worker && worker->is_leaving && !worker->is_given_up) {
        worker->leave_by = clock_now();
        pool_rearm(pool);
    }
}

/* ---- The whole ------------------------------------------------------------------------------- */

/* What the core wants: an order may end copies and cause further ones, and so may a message. */
static void obey(struct pool *pool)
{
    struct work_order order;
    bool has_orders;

    do {
        has_orders = pool->gathered != NULL; /* what is read may end copies, too */
        while (!pool->is_closing && work_worker_next_order(pool->worker->core, &order)) {
            carry_out(pool, &order);
            has_orders = true;
        }
        requests_flush(pool);
        send_messages(pool);
    } while (has_orders && !pool->is_closing);
}

/* After everything that happened. */
static void drive(struct pool *pool)
{
    struct worker *worker = pool->worker;

    if (worker->is_ordering || pool->is_closing) {
        return;
    }
    worker->is_ordering = true;
    obey(pool);
    worker->is_ordering = false;
    if (worker->is_held && !worker->copies) {
        worker->is_held = false;
        handover_release(worker->candidacy.election);
    }
    limit_services(worker);
    finish_leaving(pool);
    pool_rearm(pool);
}

static void on_message(void *userdata, const char *channel, const void *data, size_t bytes)
{
    struct pool *pool = userdata;
    struct work_message message = {0};
    instant now = clock_now();
    (void)channel;

    if (work_message_read(&message, data, bytes, NULL) == BATON_OK) {
        work_worker_hear(pool->worker->core, &message, now);
        work_message_fini(&message);
        drive(pool);
    }
}

static struct copy *to_read(const struct worker *worker, instant now)
{
    struct copy *copy = worker->copies;

    while (copy && instant_before(now, copy->read_at)) {
        copy = copy->hh.next;
    }
    return copy;
}

static void read_again(struct pool *pool, instant now)
{
    struct copy *copy;

    while ((copy = to_read(pool->worker, now))) {
        copy->read_at = INSTANT_NEVER;
        checkpoint_read(pool, copy);
    }
}

void worker_tick(struct pool *pool)
{
    struct worker *worker = pool->worker;
    instant now = clock_now();

    if (!worker) {
        return;
    }
    read_again(pool, now);
    if (may_resume(worker)) {
        begin_session(pool);
    }
    if (!instant_before(now, instant_min(worker->leave_by, worker->move_by))) {
        give_up(pool, now);
    }
    work_worker_tick(worker->core, now);
    drive(pool);
}

instant worker_deadline(const struct pool *pool)
{
    const struct worker *worker = pool->worker;
    instant next;

    if (!worker) {
        return INSTANT_NEVER;
    }
    next = instant_min(work_worker_deadline(worker->core), worker->leave_by);
    next = instant_min(next, worker->move_by);
    if (worker->is_suspended) {
        next = instant_min(next, instant_add(clock_now(), SPAN_MS(RELIEF_MS)));
    }
    for (const struct copy *copy = worker->copies; copy; copy = copy->hh.next) {
        next = instant_min(next, copy->read_at);
    }
    return next;
}

/* ---- For the program ------------------------------------------------------------------------- */

static int end_started(struct pool *pool, const char *id, uint64_t epoch,
                       const struct work_result *result)
{
    struct copy *copy = worker_copy(pool, id);

    if (!copy || !copy->is_started || copy->epoch != epoch) {
        return BATON_ENOENT;
    }
    end_copy(pool, copy, result);
    drive(pool);
    return BATON_OK;
}

int pool_ended(struct pool *pool, const struct work_result *result)
{
    return end_started(pool, result->id, result->epoch, result);
}

int pool_gave_up(struct pool *pool, const char *id, uint64_t epoch)
{
    return end_started(pool, id, epoch, NULL);
}

int pool_progress(struct pool *pool, const char *id, int permille, const char *const *keys)
{
    return pool->worker && work_worker_progress(pool->worker->core, id, permille, keys)
               ? BATON_OK
               : BATON_ENOENT;
}

void pool_load(struct pool *pool, uint32_t cpu_permille)
{
    if (pool->worker) {
        work_worker_load(pool->worker->core, cpu_permille);
    }
}

bool pool_may_act(const struct pool *pool, uint64_t *ret_session)
{
    const struct worker *worker = pool->worker;

    return worker && worker->candidacy.election &&
           election_is_leader(worker->candidacy.election, ret_session);
}

span pool_lease_left(const struct pool *pool)
{
    const struct worker *worker = pool->worker;

    return worker && worker->candidacy.election ? election_lease_left(worker->candidacy.election)
                                                : SPAN_NS(0);
}

size_t pool_running(const struct pool *pool)
{
    return pool->worker ? HASH_COUNT(pool->worker->copies) : 0;
}

size_t pool_unconfirmed(const struct pool *pool)
{
    return pool->worker ? work_worker_results(pool->worker->core) : 0;
}

uint64_t pool_session(const struct pool *pool)
{
    return pool->worker ? pool->worker->session : 0;
}

/* ---- Beginning and end ----------------------------------------------------------------------- */

static int subscribe(struct pool *pool, struct feed **ret, const char *name,
                     struct baton_error *reterr)
{
    char channel[POOL_KEY_MAX];

    pool_key(channel, pool->name, name);
    return feed_subscribe(ret, pool->member, channel, on_message, pool, reterr);
}

int worker_begin(struct pool *pool, const struct pool_config *config, struct baton_error *reterr)
{
    struct work_worker_options options = config->worker_options;
    struct worker *worker = calloc(1, sizeof(*worker));
    char name[POOL_KEY_MAX];
    int code;

    (void)snprintf(options.name, sizeof(options.name), "%s", config->worker);
    if (!worker || !(worker->core = work_worker_new(&options))) {
        free(worker);
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    worker->pool = pool;
    worker->halt_by = worker->leave_by = worker->move_by = INSTANT_NEVER;
    worker->doubted_end = INSTANT_PAST;
    memcpy(worker->name, options.name, sizeof(worker->name));
    pool->worker = worker;
    pool_key(name, pool->name, worker->name);
    code = subscribe(pool, &worker->own, worker->name, reterr);
    code = code ? code : subscribe(pool, &worker->all, POOL_ALL, reterr);
    return code ? code
                : candidacy_begin(&worker->candidacy, pool->member, name, config->lease, on_event,
                                  reterr);
}

static void on_left(struct candidacy *candidacy)
{
    pool_release(CANDIDACY_OF(struct worker, candidacy, candidacy)->pool);
}

void worker_end(struct pool *pool)
{
    struct worker *worker = pool->worker;

    if (worker) {
        feed_stop(worker->own);
        feed_stop(worker->all);
        pool->open++;
        candidacy_leave(&worker->candidacy, on_left);
    }
}

void worker_free(struct worker *worker)
{
    if (!worker) {
        return;
    }
    while (worker->copies) {
        copy_free(worker, worker->copies); /* NOLINT(clang-analyzer-unix.Malloc) */
    }
    work_worker_free(worker->core);
    free(worker);
}

bool worker_is_named(const struct worker *worker, const char *name)
{
    return strcmp(worker->name, name) == 0;
}

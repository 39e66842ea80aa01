/* Taking part in a pool: its handle from open to close. */
#include "api/work.h"

#include "api/perform.h"
#include "api/sized.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

int work_may_wait(const struct baton *baton, struct baton_error *reterr)
{
    int code = check_owner(baton, reterr);

    return code == BATON_OK && on_loop(baton) ? perform_refuse(reterr) : code;
}

/* ---- Events ---------------------------------------------------------------------------------- */

/* Of a name on either side: the lists agree, in their order, too. */
#define SAME_EVENT(symbol, name)                                                                   \
    _Static_assert((int)BATON_WORK_EVENT_##symbol == (int)POOL_##symbol, "the same event");
SAME_EVENT(LEADER, "")
SAME_EVENT(LEADS, "")
SAME_EVENT(READY, "")
SAME_EVENT(LEADS_NO_MORE, "")
SAME_EVENT(WORKER_USED, "")
SAME_EVENT(WORKER_GONE, "")
SAME_EVENT(SESSION, "")
SAME_EVENT(SESSION_LOST, "")
SAME_EVENT(ERROR, "")
#undef SAME_EVENT

const char *baton_work_event_name(enum baton_work_event_type type)
{
    return pool_event_name((enum pool_event_type)type);
}

static void on_event(void *userdata, const struct pool_event *event)
{
    struct baton_work *work = userdata;
    const struct baton_work_event shown = {.type = (enum baton_work_event_type)event->type,
                                           .name = event->name,
                                           .epoch = event->epoch,
                                           .error = event->error};

    if (work->on_event) {
        work->baton->work_calls++;
        work->on_event(work, &shown, work->userdata);
        work->baton->work_calls--;
    }
}

/* ---- Opening --------------------------------------------------------------------------------- */

struct open_call {
    struct call base;
    struct baton_work *work;          /* the call's, while it is not in the list */
    const struct pool_config *config; /* its caller waits without a limit */
};

static void drop_open(struct call *base)
{
    free(((struct open_call *)base)->work);
}

/* In the list first: callbacks may come at once. After a failure it stays there, since a campaign
 * that had begun ends later, and publishes its lease until then. */
static void run_open(struct call *base)
{
    struct open_call *call = (struct open_call *)base;
    struct baton_work *work = call->work;
    struct baton_error error = {0};
    int code;

    call->work = NULL;
    LL_PREPEND(base->baton->works, work);
    code = pool_open(&work->pool, base->baton->member, call->config, &error);
    if (code != BATON_OK) {
        work->pool = NULL;
    }
    call_finish(base, code, &error);
}

/* 0 stands for the preset. */
static int take_span(span *ret, const char *name, int64_t ms, struct baton_error *reterr)
{
    if (ms < 0 || ms > WORK_SPAN_MAX_MS) {
        return error_set(reterr, BATON_EINVAL, "%s: %lld: must be 0 (the preset) to %lld", name,
                         (long long)ms, (long long)WORK_SPAN_MAX_MS);
    }
    *ret = ms > 0 ? SPAN_MS(ms) : *ret;
    return BATON_OK;
}

static int take_leader(struct work_leader_options *ret, const struct baton_work_options *options,
                       struct baton_error *reterr)
{
    bool is_never = options->rebalance_every_ms < 0;
    int code;

    *ret = pool_leader_options();
    if (options->strategy && !placement_strategy_parse(options->strategy, &ret->strategy)) {
        return error_set(reterr, BATON_EINVAL,
                         "strategy: \"%.40s\": must be least-loaded, round-robin, capability or "
                         "priority",
                         options->strategy);
    }
    code =
        take_span(&ret->report_interval, "report_interval_ms", options->report_interval_ms, reterr);
    code = code ? code : take_span(&ret->silence, "silence_ms", options->silence_ms, reterr);
    code = code
               ? code
               : take_span(&ret->worker_lease, "worker_lease_ms", options->worker_lease_ms, reterr);
    code = code ? code : take_span(&ret->keep, "keep_ms", options->keep_ms, reterr);
    if (is_never) {
        ret->rebalance_every = SPAN_NS(0);
        return code;
    }
    return code ? code
                : take_span(&ret->rebalance_every, "rebalance_every_ms",
                            options->rebalance_every_ms, reterr);
}

/* By the reader of reports: else no leader would take one of them. */
static int take_labels(char ret[static WORK_NEEDS_MAX], const char *labels,
                       struct baton_error *reterr)
{
    json_t *object = json_pack("{s:o*}", "labels", work_labels_json(labels));
    int code = object ? work_labels_read(object, "", "labels", ret, reterr)
                      : error_set(reterr, BATON_ENOMEM, "out of memory");

    json_decref(object);
    if (code == BATON_EPROTO && reterr) {
        reterr->code = BATON_EINVAL;
    }
    return code == BATON_EPROTO ? BATON_EINVAL : code;
}

static int take_worker(struct pool_config *ret, const struct baton_work_options *options,
                       struct baton_error *reterr)
{
    const struct {
        const char *name;
        uint64_t value, most;
    } amounts[] = {
        {"slots", options->slots, WORK_WEIGHT_MAX},
        {"gpus", options->gpus, WORK_GPUS_MAX},
        {"memory_mib", options->memory_mib, WORK_MEMORY_MAX_MIB},
    };
    struct work_worker_options *worker = &ret->worker_options;

    for (size_t i = 0; i < sizeof(amounts) / sizeof(amounts[0]); i++) {
        if (amounts[i].value > amounts[i].most) {
            return error_set(reterr, BATON_EINVAL, "%s: %llu: must be at most %llu",
                             amounts[i].name, (unsigned long long)amounts[i].value,
                             (unsigned long long)amounts[i].most);
        }
    }
    if (options->worker && !options->on_start) {
        return error_set(reterr, BATON_EINVAL,
                         "worker \"%.60s\": it has no on_start, which begins its runs",
                         options->worker);
    }
    ret->worker = options->worker;
    worker->slots = options->slots > 0 ? options->slots : 1;
    worker->gpus = options->gpus;
    worker->memory_mib = options->memory_mib;
    worker->report_interval = ret->leader_options.report_interval;
    return options->labels ? take_labels(worker->labels, options->labels, reterr) : BATON_OK;
}

static int perform_open(struct baton_work *work, struct pool_config *config,
                        struct baton_error *reterr)
{
    struct open_call *call = call_new(work->baton, sizeof(*call), run_open);
    int code;

    if (!call) {
        free(work);
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    config->calls = (struct pool_calls){
        .on_start = run_start, .on_halt = run_halt, .on_event = on_event, .userdata = work};
    config->lease = &work->lease;
    call->base.drop = drop_open;
    call->work = work;
    call->config = config;
    code = perform(&call->base, INT64_MAX, BATON_EDEADLK, reterr);
    call_unref(&call->base);
    return code;
}

int baton_work_open(struct baton_work **ret, struct baton *baton, const char *pool,
                    const struct baton_work_options *options, struct baton_error *reterr)
{
    struct baton_work_options own;
    struct pool_config config = {.name = pool};
    struct baton_work *work;
    int code = check_owner(baton, reterr);

    code =
        code ? code : sized_copy(&own, sizeof(own), options, "struct baton_work_options", reterr);
    code = code ? code : take_leader(&config.leader_options, &own, reterr);
    code = code ? code : take_worker(&config, &own, reterr);
    if (code != BATON_OK) {
        return code;
    }
    work = calloc(1, sizeof(*work));
    if (!work) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    config.may_lead = !own.never_leads;
    work->baton = baton;
    work->lease.wake_fd = -1; /* nobody sleeps until the lease ends */
    work->on_start = own.on_start;
    work->on_halt = own.on_halt;
    work->on_event = own.on_event;
    work->userdata = own.userdata;
    code = perform_open(work, &config, reterr);
    if (code == BATON_OK) {
        *ret = work;
    }
    return code;
}

/* ---- Leaving --------------------------------------------------------------------------------- */

struct work_call {
    struct call base;
    struct baton_work *work;
    instant deadline; /* of leaving */
};

static void on_left(void *userdata, int code)
{
    struct baton_work *work = userdata;
    struct call *call = work->leaving;
    size_t unconfirmed = pool_unconfirmed(work->pool);
    struct baton_error error = {0};

    if (call && unconfirmed > 0) {
        (void)error_set(&error, code,
                        "pool \"%s\": no leader has confirmed the results of %zu of its jobs here, "
                        "which may run again: is there a leader, and a quorum?",
                        pool_name(work->pool), unconfirmed);
    } else if (call) {
        (void)error_set(&error, code,
                        "pool \"%s\": what still ran at the end of the time was halted",
                        pool_name(work->pool));
    }
    if (call) {
        work->leaving = NULL;
        call_finish(call, code, &error);
    }
}

static void run_leave(struct call *base)
{
    struct work_call *call = (struct work_call *)base;
    struct baton_work *work = call->work;
    struct baton_error error = {0};
    int code;

    if (work->leaving) {
        (void)error_set(&error, BATON_EBUSY, "pool \"%s\": it is leaving already",
                        pool_name(work->pool));
        call_finish(base, BATON_EBUSY, &error);
        return;
    }
    work->leaving = base;
    code = pool_leave(work->pool, call->deadline, on_left, work, &error);
    if (code != BATON_OK) {
        work->leaving = NULL;
        call_finish(base, code, &error);
    }
}

int baton_work_leave(struct baton_work *work, int64_t timeout_ms, struct baton_error *reterr)
{
    struct work_call *call;
    int code = work_may_wait(work->baton, reterr);

    if (code != BATON_OK) {
        return code;
    }
    call = call_new(work->baton, sizeof(*call), run_leave);
    if (!call) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    call->work = work;
    call->deadline = perform_deadline(timeout_ms);
    code = perform(&call->base, INT64_MAX, BATON_EDEADLK, reterr);
    call_unref(&call->base);
    return code;
}

/* ---- Closing --------------------------------------------------------------------------------- */

static void on_closed(void *userdata)
{
    struct baton_work *work = userdata;
    struct call *closing = work->closing;
    struct baton *baton = work->baton;

    work->pool = NULL;
    if (closing) { /* its caller frees the handle */
        LL_DELETE(baton->works, work);
        call_finish(closing, BATON_OK, NULL);
    }
    works_settle(baton);
}

/* A pool that closes calls back no more. */
static void close_pool(struct baton_work *work)
{
    const struct baton_error closed = {BATON_ECLOSED, "the handle was closed: open another one"};
    struct call *leaving = work->leaving;

    work->leaving = NULL;
    if (leaving) {
        call_finish(leaving, BATON_ECLOSED, &closed);
    }
    runs_end(work);
    pool_close(work->pool, on_closed, work);
}

static void run_close(struct call *base)
{
    struct baton_work *work = ((struct work_call *)base)->work;

    work->closing = base;
    close_pool(work);
}

static void work_free(struct baton_work *work)
{
    runs_free(work);
    free(work);
}

/* Out of memory must not keep a worker's session: it tries until there is some. */
int baton_work_close(struct baton_work *work, struct baton_error *reterr)
{
    struct work_call *call;
    int code = work ? work_may_wait(work->baton, reterr) : BATON_OK;

    if (!work || code != BATON_OK) {
        return code;
    }
    while (!(call = call_new(work->baton, sizeof(*call), run_close))) {
        (void)sched_yield();
    }
    call->work = work;
    if (perform(&call->base, INT64_MAX, BATON_OK, NULL) == BATON_OK) {
        work_free(work);
    } else { /* it was stopped, and baton_close() frees the handle */
        baton_stop(work->baton);
    }
    call_unref(&call->base);
    return BATON_OK;
}

/* ---- The end of the loop --------------------------------------------------------------------- */

void works_settle(struct baton *baton)
{
    void (*stopped)(struct baton * baton) = baton->works_stopped;
    bool is_open = baton->work_questions > 0;

    for (const struct baton_work *work = baton->works; work; work = work->next) {
        is_open |= work->pool != NULL;
    }
    if (stopped && !is_open) {
        baton->works_stopped = NULL;
        stopped(baton);
    }
}

void works_stop(struct baton *baton, void (*stopped)(struct baton *baton))
{
    baton->works_stopped = stopped;
    work_waits_stop(baton);
    for (struct baton_work *work = baton->works, *next; work; work = next) {
        next = work->next;
        if (work->pool && !work->closing) {
            close_pool(work);
        }
    }
    works_settle(baton);
}

void works_free(struct baton *baton)
{
    while (baton->works) {
        struct baton_work *work = baton->works;

        LL_DELETE(baton->works, work);
        work_free(work);
    }
}

#include "pool/pool_int.h"

#include "member/feed.h"
#include "member/handover.h"
#include "member/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { COMPLAINTS_S = 5 }; /* between two errors of the same sort of thing */

struct work_leader_options pool_leader_options(void)
{
    return (struct work_leader_options){
        .strategy = PLACEMENT_LEAST_LOADED,
        .report_interval = SPAN_S(1),
        .silence = SPAN_S(5),
        .collect = SPAN_S(10),
        .worker_lease = SPAN_S(30),
        .rebalance_every = SPAN_S(30),
        .rebalance_percent = 20,
        .keep = SPAN_S(24 * 3600),
    };
}

const char *pool_event_name(enum pool_event_type type)
{
    switch (type) {
#define NAME_OF_EVENT(symbol, name)                                                                \
    case symbol:                                                                                   \
        return (name);
        POOL_EVENTS(NAME_OF_EVENT)
#undef NAME_OF_EVENT
    }
    return "unknown";
}

const char *pool_name(const struct pool *pool)
{
    return pool->name;
}

struct member *pool_member(const struct pool *pool)
{
    return pool->member;
}

struct moment pool_now(void)
{
    struct timespec wall;

    (void)clock_gettime(CLOCK_REALTIME, &wall);
    return (struct moment){.now = clock_now(),
                           .unix_ms = (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000};
}

void pool_tell(struct pool *pool, const struct pool_event *event)
{
    if (pool->calls.on_event && !pool->is_closing) {
        pool->calls.on_event(pool->calls.userdata, event);
    }
}

static void tell_error(struct pool *pool, const struct baton_error *error, instant *told)
{
    instant now = clock_now();

    if (!instant_before(now, instant_add(*told, SPAN_S(COMPLAINTS_S)))) {
        *told = now;
        pool_tell(pool, &(struct pool_event){.type = POOL_ERROR, .error = *error});
    }
}

void pool_complain(struct pool *pool, const struct baton_error *error)
{
    tell_error(pool, error, &pool->complained);
}

void pool_tell_wait(struct pool *pool, const struct baton_event *event)
{
    if (event->lease_left_ns > 0) {
        tell_error(pool, &event->error, &pool->wait_told);
    }
}

static void on_sent(void *userdata, int code, const struct baton_error *error)
{
    (void)userdata;
    (void)code;
    (void)error;
}

void pool_publish(struct pool *pool, const char *name, const void *data, size_t bytes)
{
    char channel[POOL_KEY_MAX];
    struct baton_error error;

    pool_key(channel, pool->name, name);
    if (store_publish(pool->member, channel, data, bytes, on_sent, NULL, &error) != BATON_OK) {
        pool_complain(pool, &error);
    }
}

/* ---- Time ------------------------------------------------------------------------------------ */

static void on_timer(uv_timer_t *timer)
{
    struct pool *pool = timer->data;

    pool->is_ticking = true;
    lead_tick(pool);
    contend_tick(pool, clock_now());
    reports_tick(pool, clock_now());
    worker_tick(pool);
    pool_rearm(pool);
    pool->is_ticking = false;
}

/* Whole milliseconds, rounded up: too early would be in vain. */
void pool_rearm(struct pool *pool)
{
    instant next;
    uint64_t ms;
    span left;

    if (pool->is_closing) {
        return;
    }
    next = instant_min(lead_deadline(pool),
                       instant_min(worker_deadline(pool), contend_deadline(pool)));
    next = instant_min(next, pool->read_at);
    if (next.ns == INSTANT_NEVER.ns) {
        (void)uv_timer_stop(&pool->timer);
        return;
    }
    left = instant_since(next, clock_now());
    uv_update_time(pool->timer.loop);
    ms = left.ns > 0 ? (uint64_t)(left.ns + 999999) / 1000000 : 0;
    if (pool->is_ticking && ms == 0) {
        ms = 1; /* a timer that is over again is run again before the loop looks at its sockets */
    }
    (void)uv_timer_start(&pool->timer, on_timer, ms, 0);
}

/* ---- The leader's channel and election ------------------------------------------------------- */

static void on_report(void *userdata, const char *channel, const void *data, size_t bytes)
{
    (void)channel;
    reports_take(userdata, data, bytes);
}

static void on_resigned(void *userdata, int code, const struct baton_error *error)
{
    (void)userdata;
    (void)code;
    (void)error;
}

void pool_resign(struct pool *pool)
{
    const struct handover_request request = {.kind = HANDOVER_RESIGN,
                                             .deadline = instant_add(clock_now(), SPAN_S(1)),
                                             .is_forced = true,
                                             .done = on_resigned};

    if (handover_begin(pool->leadership.election, &request, NULL) != BATON_OK) {
        lead_end(pool); /* what is left of the leadership does nothing */
    }
}

static void on_event(struct candidacy *candidacy, const struct baton_event *event)
{
    struct pool *pool = CANDIDACY_OF(struct pool, leadership, candidacy);

    switch (event->type) {
    case BATON_EVENT_ACQUIRED:
        lead_begin(pool, event->epoch);
        break;
    case BATON_EVENT_LOST:
    case BATON_EVENT_STOPPED:
        lead_end(pool);
        break;
    case BATON_EVENT_LEADER:
        pool_tell(pool, &(struct pool_event){.type = POOL_LEADER,
                                             .name = event->member.name,
                                             .epoch = event->epoch});
        break;
    case BATON_EVENT_ELECTION_FAILED:
        pool_tell_wait(pool, event);
        break;
    case BATON_EVENT_ERROR:
        pool_complain(pool, &event->error);
        break;
    default:
        break;
    }
}

static int stand(struct pool *pool, struct baton_error *reterr)
{
    char name[POOL_KEY_MAX];
    int code;

    pool_key(name, pool->name, NULL);
    code = feed_subscribe(&pool->reports, pool->member, name, on_report, pool, reterr);
    return code ? code
                : candidacy_begin(&pool->leadership, pool->member, name, NULL, on_event, reterr);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static int check(const struct member *member, const struct pool_config *config,
                 struct baton_error *reterr)
{
    int code = pool_name_check(config->name, reterr);

    code = code || !config->worker ? code : pool_worker_check(config->name, config->worker, reterr);
    code = code ? code : member_need(member, PROVIDER_STATE, "state", reterr);
    code = code ? code : member_need(member, PROVIDER_CHANNELS, "channels", reterr);
    if (code != BATON_OK || member_has(member, PROVIDER_MANY_ELECTIONS)) {
        return code;
    }
    return error_set(reterr, BATON_ENOTSUP,
                     "pool \"%s\": it needs many elections, and this group is one by itself; name "
                     "it: group=NAME",
                     config->name);
}

static void discard(void *userdata)
{
    (void)userdata;
}

int pool_open(struct pool **ret, struct member *member, const struct pool_config *config,
              struct baton_error *reterr)
{
    int code = check(member, config, reterr);
    struct pool *pool = code ? NULL : calloc(1, sizeof(*pool));

    if (!pool) {
        return code ? code : error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    pool->member = member;
    pool->calls = config->calls;
    pool->leader_options = config->leader_options;
    pool->complained = pool->wait_told = INSTANT_PAST;
    pool->read_at = INSTANT_NEVER;
    memcpy(pool->name, config->name, strlen(config->name) + 1);
    (void)uv_timer_init(member_loop(member), &pool->timer);
    pool->timer.data = pool;
    *ret = pool;
    code = member_begin(member, reterr);
    code = code || !config->worker ? code : worker_begin(pool, config, reterr);
    code = code || !config->may_lead ? code : stand(pool, reterr);
    if (code != BATON_OK) {
        *ret = NULL;
        pool_close(pool, discard, NULL);
    }
    return code;
}

/* ---- Closing --------------------------------------------------------------------------------- */

static void pool_free(struct pool *pool)
{
    void (*closed)(void *userdata) = pool->closed;
    void *userdata = pool->closed_userdata;

    reports_drop(pool);
    heard_free(&pool->heard);
    worker_free(pool->worker);
    free(pool);
    closed(userdata);
}

void pool_release(struct pool *pool)
{
    if (--pool->open == 0 && pool->is_closing) {
        pool_free(pool);
    }
}

static void on_timer_closed(uv_handle_t *timer)
{
    pool_release(timer->data);
}

static void on_stood_down(struct candidacy *candidacy)
{
    pool_release(CANDIDACY_OF(struct pool, leadership, candidacy));
}

void pool_close(struct pool *pool, void (*closed)(void *userdata), void *userdata)
{
    if (pool->is_closing) {
        return;
    }
    pool->is_closing = true;
    pool->closed = closed;
    pool->closed_userdata = userdata;
    pool->open += 2; /* the timer, the leadership */
    uv_close((uv_handle_t *)&pool->timer, on_timer_closed);
    requests_drop(pool);
    feed_stop(pool->reports);
    worker_end(pool);
    lead_end(pool);
    contend_leave_all(pool);
    candidacy_leave(&pool->leadership, on_stood_down);
}

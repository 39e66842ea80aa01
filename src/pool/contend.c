/* The leader's part in workers' elections: it waits in each for the end of the worker's session.
 *
 *   contend_enter ─▶ granted to us: the worker's session is over ─▶ contend_leave
 *                 ─▶ granted to a later session of the worker: those before are over
 *
 * The worker of this process has its election already: what that hears counts (work.c).
 */
#include "pool/pool_int.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum { RETRY_MS = 1000 };

struct contender {
    struct pool *pool;
    struct candidacy candidacy;
    bool is_wanted;   /* false: it leaves */
    instant retry_at; /* INSTANT_NEVER: nothing failed */
    UT_hash_handle hh;
    char worker[BATON_NAME_MAX];
};

static void on_event(struct candidacy *candidacy, const struct baton_event *event)
{
    struct contender *contender = CANDIDACY_OF(struct contender, candidacy, candidacy);
    struct pool *pool = contender->pool;
    bool is_ours = event->type == BATON_EVENT_ACQUIRED;

    if (contender->is_wanted && event->epoch != 0 &&
        (is_ours || (event->type == BATON_EVENT_LEADER && !event->member.is_self))) {
        lead_session(pool, contender->worker, event->epoch, is_ours);
    }
}

static void begin(struct contender *contender, instant now)
{
    struct pool *pool = contender->pool;
    char name[POOL_KEY_MAX];
    struct baton_error error;

    pool_key(name, pool->name, contender->worker);
    contender->retry_at = INSTANT_NEVER;
    if (candidacy_begin(&contender->candidacy, pool->member, name, NULL, on_event, &error) !=
        BATON_OK) {
        contender->retry_at = instant_add(now, SPAN_MS(RETRY_MS));
        pool_complain(pool, &error);
    }
}

/* It may have been wanted again meanwhile. */
static void on_left(struct candidacy *candidacy)
{
    struct contender *contender = CANDIDACY_OF(struct contender, candidacy, candidacy);
    struct pool *pool = contender->pool;

    if (contender->is_wanted) {
        begin(contender, clock_now());
        return;
    }
    HASH_DEL(pool->contenders, contender);
    free(contender);
    pool_release(pool);
}

static struct contender *find(const struct pool *pool, const char *worker)
{
    struct contender *contender;

    HASH_FIND_STR(pool->contenders, worker, contender);
    return contender;
}

static struct contender *add(struct pool *pool, const char *worker)
{
    struct contender *contender = calloc(1, sizeof(*contender));

    if (contender) {
        contender->pool = pool;
        memcpy(contender->worker, worker, strlen(worker) + 1);
        HASH_ADD_STR(pool->contenders, worker, contender);
    }
    if (contender && !contender->hh.tbl) {
        free(contender);
        return NULL;
    }
    pool->open += contender != NULL;
    return contender;
}

void contend_enter(struct pool *pool, const char *worker)
{
    struct contender *contender;

    if (pool->worker && worker_is_named(pool->worker, worker)) {
        worker_tell_lead(pool);
        return;
    }
    contender = find(pool, worker);
    if (!contender && !(contender = add(pool, worker))) {
        pool_complain(pool, &(struct baton_error){BATON_ENOMEM, "out of memory"});
        return;
    }
    contender->is_wanted = true;
    if (!contender->candidacy.election) {
        begin(contender, clock_now());
    }
}

static void leave(struct contender *contender)
{
    contender->is_wanted = false;
    contender->retry_at = INSTANT_NEVER;
    candidacy_leave(&contender->candidacy, on_left);
}

void contend_leave(struct pool *pool, const char *worker)
{
    struct contender *contender = find(pool, worker);

    if (contender) {
        leave(contender);
    }
}

void contend_leave_all(struct pool *pool)
{
    struct contender *next;

    for (struct contender *at = pool->contenders; at; at = next) {
        next = at->hh.next;
        leave(at);
    }
}

void contend_tick(struct pool *pool, instant now)
{
    struct contender *next;

    for (struct contender *at = pool->contenders; at; at = next) {
        next = at->hh.next;
        if (!instant_before(now, at->retry_at)) {
            begin(at, now);
        }
    }
}

instant contend_deadline(const struct pool *pool)
{
    instant next = INSTANT_NEVER;

    for (const struct contender *at = pool->contenders; at; at = at->hh.next) {
        next = instant_min(next, at->retry_at);
    }
    return next;
}

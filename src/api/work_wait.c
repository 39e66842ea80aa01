/* Waiting until items have ended, and their results. */
#include "api/work.h"

#include "api/perform.h"
#include "pool/wait.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* ---- Results --------------------------------------------------------------------------------- */

void baton_work_results_free(struct baton_work_result *results, size_t count)
{
    for (size_t i = 0; results && i < count; i++) {
        free(results[i].id);
        free(results[i].output);
    }
    free(results);
}

int work_result_show(struct baton_work_result *ret, const char *id, enum baton_work_end end,
                     const struct work_result *result)
{
    size_t bytes = result ? result->output_bytes : 0;
    char *own_id = strdup(id), *output = bytes > 0 ? malloc(bytes + 1) : NULL;

    if (!own_id || (bytes > 0 && !output)) {
        free(own_id);
        free(output);
        return BATON_ENOMEM;
    }
    *ret = (struct baton_work_result){.id = own_id, .end = end, .output = output, .bytes = bytes};
    if (output) {
        memcpy(output, result->output, bytes);
        output[bytes] = '\0';
    }
    if (result) {
        ret->code = result->code;
        ret->epoch = result->epoch;
        ret->began_unix_ms = result->began_unix_ms;
        ret->ended_unix_ms = result->ended_unix_ms;
    }
    return BATON_OK;
}

/* ---- Waiting --------------------------------------------------------------------------------- */

struct waited {
    const char *id; /* the call's */
    UT_hash_handle hh;
};

struct work_wait {
    struct call base;
    struct work_wait *prev, *next; /* in the baton's list, while it waits */
    struct pool_wait *wait;        /* NULL: it does not wait (any more) */
    char *pool;
    char **ids;
    size_t count;
    struct waited *waited; /* one for each id, and a table of them */
    struct waited *by_id;
    struct baton_work_result *results;
    bool lacks_memory;
};

static void drop_wait(struct call *base)
{
    struct work_wait *wait = (struct work_wait *)base;

    HASH_CLEAR(hh, wait->by_id);
    for (size_t i = 0; wait->ids && i < wait->count; i++) {
        free(wait->ids[i]);
    }
    free((void *)wait->ids);
    free(wait->waited);
    free(wait->pool);
    baton_work_results_free(wait->results, wait->count);
}

static void finish(struct work_wait *wait, int code, const struct baton_error *error)
{
    pool_wait_stop(wait->wait);
    wait->wait = NULL;
    DL_DELETE(wait->base.baton->work_waits, wait);
    call_finish(&wait->base, code, error);
}

static enum baton_work_end end_of(enum work_state state)
{
    return state == WORK_COMPLETED   ? BATON_WORK_COMPLETED
           : state == WORK_CANCELLED ? BATON_WORK_CANCELLED
                                     : BATON_WORK_FAILED;
}

static void on_end(void *userdata, const struct pool_end *end)
{
    struct work_wait *wait = userdata;
    struct waited *waited;

    HASH_FIND_STR(wait->by_id, end->id, waited);
    if (waited && work_result_show(&wait->results[waited - wait->waited], end->id,
                                   end_of(end->state), end->result) != BATON_OK) {
        wait->lacks_memory = true;
    }
    if (pool_wait_left(wait->wait) == 0) {
        finish(wait, wait->lacks_memory ? BATON_ENOMEM : BATON_OK, NULL);
    }
}

static void run_wait(struct call *base)
{
    struct work_wait *wait = (struct work_wait *)base;
    struct baton_error error = {0};
    int code;

    DL_APPEND(base->baton->work_waits, wait);
    code = pool_wait_begin(&wait->wait, base->baton->member, wait->pool,
                           (const char *const *)wait->ids, wait->count, on_end, wait, &error);
    if (code != BATON_OK || wait->count == 0) {
        finish(wait, code, &error);
    }
}

void work_waits_stop(struct baton *baton)
{
    const struct baton_error closed = {BATON_ECLOSED, "the handle was closed: open another one"};

    while (baton->work_waits) {
        finish(baton->work_waits, BATON_ECLOSED, &closed);
    }
}

/* ---- For the caller -------------------------------------------------------------------------- */

static int take_ids(struct work_wait *wait, const char *const *ids, size_t count,
                    struct baton_error *reterr)
{
    wait->ids = (char **)calloc(count + 1, sizeof(*wait->ids));
    wait->waited = calloc(count + 1, sizeof(*wait->waited));
    wait->results = calloc(count + 1, sizeof(*wait->results));
    wait->count = count;
    if (!wait->pool || !wait->ids || !wait->waited || !wait->results) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        struct waited *before;

        HASH_FIND_STR(wait->by_id, ids[i], before);
        if (before) {
            return error_set(reterr, BATON_EINVAL, "item \"%.140s\": it is waited for twice",
                             ids[i]);
        }
        wait->waited[i].id = wait->ids[i] = strdup(ids[i]);
        if (wait->ids[i]) {
            HASH_ADD_KEYPTR(hh, wait->by_id, wait->ids[i], strlen(wait->ids[i]), &wait->waited[i]);
        }
        if (!wait->waited[i].hh.tbl) {
            return error_set(reterr, BATON_ENOMEM, "out of memory");
        }
    }
    return BATON_OK;
}

struct stop_call {
    struct call base;
    struct work_wait *wait;
};

static void run_stop_wait(struct call *base)
{
    struct work_wait *wait = ((struct stop_call *)base)->wait;

    if (wait->wait) {
        finish(wait, BATON_ETIMEDOUT, NULL);
    }
    call_finish(base, BATON_OK, NULL);
}

/* Its caller waits no longer. Without memory it goes on until the items have ended, or the baton is
 * stopped. */
static void stop_wait(struct work_wait *wait)
{
    struct stop_call *call = call_new(wait->base.baton, sizeof(*call), run_stop_wait);

    if (call) {
        call->wait = wait;
        (void)perform(&call->base, INT64_MAX, BATON_OK, NULL); /* or it was stopped */
        call_unref(&call->base);
    }
}

int baton_work_wait(struct baton *baton, const char *pool, const char *const *ids, size_t count,
                    int64_t timeout_ms, struct baton_work_result **ret, struct baton_error *reterr)
{
    struct work_wait *wait;
    int code = work_may_wait(baton, reterr);

    if (code != BATON_OK) {
        return code;
    }
    wait = call_new(baton, sizeof(*wait), run_wait);
    if (!wait) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    wait->base.drop = drop_wait;
    wait->pool = strdup(pool);
    code = take_ids(wait, ids, count, reterr);
    code = code ? code : perform(&wait->base, timeout_ms, BATON_EDEADLK, reterr);
    if (code == BATON_OK && ret) {
        *ret = wait->results;
        wait->results = NULL;
    } else if (code == BATON_ETIMEDOUT) {
        stop_wait(wait);
    }
    call_unref(&wait->base);
    return code;
}

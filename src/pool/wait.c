#include "pool/wait.h"

#include "member/feed.h"
#include "member/store.h"
#include "pool/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Results come by themselves. What ends without one is found by looking at the ledger. */
enum { LOOK_MS = 2000 };

struct waited {
    UT_hash_handle hh;
    bool is_over;
    char id[WORK_ID_MAX];
};

struct pool_wait {
    struct member *member;
    struct feed *results;
    struct ledger *ledger; /* buckets as they were read last */
    struct waited *waited; /* by id */
    size_t left;
    uv_timer_t timer;
    unsigned holds; /* the timer, requests, and functions that call back */
    bool is_stopped;
    void (*on_end)(void *userdata, const struct pool_end *end);
    void *userdata;
    char pool[POOL_NAME_MAX + 1];
};

static void release(struct pool_wait *wait)
{
    struct waited *waited = wait->waited;

    if (--wait->holds > 0) {
        return;
    }
    HASH_CLEAR(hh, wait->waited); /* the table; its members are still a list */
    while (waited) {
        struct waited *next = waited->hh.next;

        free(waited);
        waited = next;
    }
    ledger_free(wait->ledger);
    free(wait);
}

static void tell(struct pool_wait *wait, struct waited *waited, enum work_state state, int32_t code,
                 const struct work_result *result)
{
    const struct pool_end end = {.id = waited->id, .state = state, .code = code, .result = result};

    if (waited->is_over || wait->is_stopped) {
        return;
    }
    waited->is_over = true;
    if (--wait->left == 0) {
        (void)uv_timer_stop(&wait->timer);
    }
    wait->holds++;
    wait->on_end(wait->userdata, &end);
    release(wait);
}

/* ---- Results --------------------------------------------------------------------------------- */

/* False: it is none. */
static bool take_result(struct pool_wait *wait, struct waited *waited, const void *data,
                        size_t bytes)
{
    struct work_result result = {0};

    if (!data || work_result_read(&result, data, bytes, NULL) != BATON_OK) {
        return false;
    }
    tell(wait, waited, result.is_success ? WORK_COMPLETED : WORK_FAILED, result.code, &result);
    work_result_fini(&result);
    return true;
}

static void key_of(char ret[static POOL_KEY_MAX], const struct pool_wait *wait, char kind,
                   const char *name)
{
    char key[POOL_KEY_MAX];

    (void)snprintf(key, sizeof(key), "%c/%s", kind, name);
    pool_key(ret, wait->pool, key);
}

static struct waited *find(const struct pool_wait *wait, const char *id)
{
    struct waited *waited;

    HASH_FIND_STR(wait->waited, id, waited);
    return waited;
}

static void on_change(void *userdata, const struct provider_value *value)
{
    struct pool_wait *wait = userdata;
    char prefix[POOL_KEY_MAX];
    struct waited *waited;

    key_of(prefix, wait, 'r', "");
    waited = find(wait, value->key + strlen(prefix));
    if (waited) {
        (void)take_result(wait, waited, value->data, value->bytes);
    }
}

/* ---- Looking at the ledger ------------------------------------------------------------------- */

struct look {
    struct pool_wait *wait;
    unsigned bucket;
    enum work_state state; /* of the item */
    int32_t code;
    char id[WORK_ID_MAX];
};

static void on_result(void *userdata, int code, const struct provider_value *values, size_t count)
{
    struct look *look = userdata;
    struct pool_wait *wait = look->wait;
    struct waited *waited = find(wait, look->id);
    bool is_there = code == BATON_OK && count > 0;

    if (waited && code == BATON_OK && !wait->is_stopped &&
        !(is_there && take_result(wait, waited, values[0].data, values[0].bytes))) {
        tell(wait, waited, look->state, look->code, NULL);
    }
    free(look);
    release(wait);
}

/* What cannot be asked now is asked the next time. */
static void ask(const struct look *like, const char *key, provider_values_cb done)
{
    struct look *look = malloc(sizeof(*look));

    if (look) {
        *look = *like;
        look->wait->holds++;
        if (store_get(look->wait->member, key, done, look, NULL) != BATON_OK) {
            look->wait->holds--;
            free(look);
        }
    }
}

static void find_ended(struct pool_wait *wait, unsigned bucket)
{
    char key[POOL_KEY_MAX];

    for (struct waited *at = wait->waited; at; at = at->hh.next) {
        const struct ledger_entry *entry = at->is_over || ledger_bucket_of(at->id) != bucket
                                               ? NULL
                                               : ledger_find(wait->ledger, at->id);
        struct look look = {.wait = wait};

        if (entry && work_state_is_final(entry->state)) {
            look.state = entry->state;
            look.code = entry->code;
            memcpy(look.id, at->id, sizeof(look.id));
            key_of(key, wait, 'r', at->id);
            ask(&look, key, on_result);
        }
    }
}

static void on_bucket(void *userdata, int code, const struct provider_value *values, size_t count)
{
    struct look *look = userdata;
    struct pool_wait *wait = look->wait;

    if (code == BATON_OK && count > 0 && values[0].data && !wait->is_stopped &&
        ledger_decode(wait->ledger, look->bucket, values[0].data, values[0].bytes, NULL) ==
            BATON_OK) {
        find_ended(wait, look->bucket);
    }
    free(look);
    release(wait);
}

static void on_timer(uv_timer_t *timer)
{
    struct pool_wait *wait = timer->data;
    bool is_wanted[LEDGER_BUCKETS] = {false};
    char number[8], key[POOL_KEY_MAX];

    for (const struct waited *at = wait->waited; at; at = at->hh.next) {
        is_wanted[ledger_bucket_of(at->id)] |= !at->is_over;
    }
    wait->holds++;
    for (unsigned i = 0; i < LEDGER_BUCKETS && !wait->is_stopped; i++) {
        if (is_wanted[i]) {
            (void)snprintf(number, sizeof(number), "%02u", i);
            key_of(key, wait, 'b', number);
            ask(&(struct look){.wait = wait, .bucket = i}, key, on_bucket);
        }
    }
    release(wait);
}

/* ---- Beginning and end ----------------------------------------------------------------------- */

/* What all ids begin with: so the results of others do not come, as far as possible. */
static void common_prefix(char ret[static WORK_ID_MAX], const char *const *ids, size_t count)
{
    size_t bytes = strlen(ids[0]);

    for (size_t i = 1; i < count; i++) {
        size_t same = 0;

        while (same < bytes && ids[i][same] == ids[0][same]) {
            same++;
        }
        bytes = same;
    }
    memcpy(ret, ids[0], bytes);
    ret[bytes] = '\0';
}

static int add_ids(struct pool_wait *wait, const char *const *ids, size_t count,
                   struct baton_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        struct waited *waited;

        if (!work_id_is_valid(ids[i])) {
            return error_set(reterr, BATON_EINVAL, "item \"%.140s\": no such id", ids[i]);
        }
        if (find(wait, ids[i])) {
            continue;
        }
        if (!(waited = calloc(1, sizeof(*waited)))) {
            return error_set(reterr, BATON_ENOMEM, "out of memory");
        }
        memcpy(waited->id, ids[i], strlen(ids[i]) + 1);
        HASH_ADD_STR(wait->waited, id, waited);
        if (!waited->hh.tbl) {
            free(waited);
            return error_set(reterr, BATON_ENOMEM, "out of memory");
        }
        wait->left++;
    }
    return BATON_OK;
}

static int watch(struct pool_wait *wait, const char *const *ids, size_t count,
                 struct baton_error *reterr)
{
    char prefix[WORK_ID_MAX] = "", key[POOL_KEY_MAX];

    common_prefix(prefix, ids, count);
    key_of(key, wait, 'r', prefix);
    return feed_watch(&wait->results, wait->member, key, on_change, wait, reterr);
}

int pool_wait_begin(struct pool_wait **ret, struct member *member, const char *pool,
                    const char *const *ids, size_t count,
                    void (*on_end)(void *userdata, const struct pool_end *end), void *userdata,
                    struct baton_error *reterr)
{
    int code = pool_name_check(pool, reterr);
    struct pool_wait *wait = code ? NULL : calloc(1, sizeof(*wait));

    if (!wait || !(wait->ledger = ledger_new())) {
        free(wait);
        return code ? code : error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    wait->member = member;
    wait->on_end = on_end;
    wait->userdata = userdata;
    (void)snprintf(wait->pool, sizeof(wait->pool), "%s", pool);
    (void)uv_timer_init(member_loop(member), &wait->timer);
    wait->timer.data = wait;
    wait->holds = 1;
    *ret = wait;
    code = add_ids(wait, ids, count, reterr);
    if (code == BATON_OK && count > 0) {
        (void)uv_timer_start(&wait->timer, on_timer, 0, LOOK_MS);
        code = watch(wait, ids, count, reterr);
    }
    if (code != BATON_OK) {
        *ret = NULL;
        pool_wait_stop(wait);
    }
    return code;
}

size_t pool_wait_left(const struct pool_wait *wait)
{
    return wait->left;
}

static void on_timer_closed(uv_handle_t *timer)
{
    release(timer->data);
}

void pool_wait_stop(struct pool_wait *wait)
{
    if (wait && !wait->is_stopped) {
        wait->is_stopped = true;
        feed_stop(wait->results);
        uv_close((uv_handle_t *)&wait->timer, on_timer_closed);
    }
}

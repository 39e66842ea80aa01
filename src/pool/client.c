#include "pool/client.h"

#include "member/store.h"
#include "pool/load.h"
#include "pool/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_id(const char *id, struct baton_error *reterr)
{
    return work_id_is_valid(id)
               ? BATON_OK
               : error_set(reterr, BATON_EINVAL, "item \"%.140s\": no such id", id);
}

static void key_of(char ret[static POOL_KEY_MAX], const char *pool, char kind, const char *name)
{
    char key[POOL_KEY_MAX];

    (void)snprintf(key, sizeof(key), "%c/%s", kind, name);
    pool_key(ret, pool, key);
}

/* ---- Orders ---------------------------------------------------------------------------------- */

struct order {
    provider_done_cb done;
    void *userdata;
};

static void on_put(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    struct order order = *(struct order *)userdata;
    (void)revision;

    free(userdata);
    order.done(order.userdata, code, error);
}

/* A key that is there, or is not; its value says nothing. */
static int put_mark(struct member *member, const char *key, bool is_there, provider_done_cb done,
                    void *userdata, struct baton_error *reterr)
{
    struct order *order = malloc(sizeof(*order));
    int code;

    if (!order) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    *order = (struct order){done, userdata};
    code = store_put(member, key, is_there ? "{}" : NULL, is_there ? 2 : 0, PROVIDER_ANY_REVISION,
                     SPAN_NS(0), on_put, order, reterr);
    if (code != BATON_OK) {
        free(order);
    }
    return code;
}

int pool_cancel(struct member *member, const char *pool, const char *id, provider_done_cb done,
                void *userdata, struct baton_error *reterr)
{
    char key[POOL_KEY_MAX];
    int code = pool_name_check(pool, reterr);

    code = code ? code : check_id(id, reterr);
    if (code != BATON_OK) {
        return code;
    }
    key_of(key, pool, 'c', id);
    return put_mark(member, key, true, done, userdata, reterr);
}

int pool_drain(struct member *member, const char *pool, const char *worker, bool is_drained,
               provider_done_cb done, void *userdata, struct baton_error *reterr)
{
    char key[POOL_KEY_MAX];
    int code = pool_name_check(pool, reterr);

    code = code ? code : pool_worker_check(pool, worker, reterr);
    if (code != BATON_OK) {
        return code;
    }
    key_of(key, pool, 'd', worker);
    return put_mark(member, key, is_drained, done, userdata, reterr);
}

/* ---- The list -------------------------------------------------------------------------------- */

struct listing {
    struct load *load;
    struct ledger *ledger;
    pool_ledger_cb done;
    void *userdata;
    int code; /* of what came so far */
    struct baton_error error;
};

static int take_bucket(struct listing *listing, const char *number,
                       const struct provider_value *value)
{
    return ledger_decode(listing->ledger, (unsigned)strtoul(number, NULL, 10), value->data,
                         value->bytes, &listing->error);
}

/* A submission that cannot be read is none of the pool's, and neither is an item whose id has
 * another one. */
static void take_submission(struct listing *listing, const char *name,
                            const struct provider_value *value)
{
    struct work_item **items;
    struct ledger_entry *entry;
    size_t count = 0;

    if (work_submission_read(&items, &count, name, value->data, value->bytes, NULL) != BATON_OK) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        (void)ledger_submit(listing->ledger, items[i], 0, &entry);
        work_item_unref(items[i]);
    }
    free((void *)items);
}

static void on_value(void *userdata, const char *key, const struct provider_value *value)
{
    struct listing *listing = userdata;

    if (listing->code != BATON_OK || !value->data) {
        return;
    }
    if (strncmp(key, "b/", 2) == 0) {
        listing->code = take_bucket(listing, key + 2, value);
    } else if (strncmp(key, "s/", 2) == 0) {
        take_submission(listing, key + 2, value);
    }
}

static void on_loaded(void *userdata, int code, const struct baton_error *error)
{
    struct listing *listing = userdata;

    if (code == BATON_OK && listing->code != BATON_OK) {
        code = listing->code;
        error = &listing->error;
    }
    listing->done(listing->userdata, code, code ? NULL : listing->ledger, error);
    ledger_free(listing->ledger);
    free(listing);
}

int pool_list(struct member *member, const char *pool, pool_ledger_cb done, void *userdata,
              struct baton_error *reterr)
{
    const struct load_calls calls = {.on_value = on_value, .done = on_loaded};
    struct load_calls own = calls;
    int code = pool_name_check(pool, reterr);
    struct listing *listing = code ? NULL : calloc(1, sizeof(*listing));

    if (!listing || !(listing->ledger = ledger_new())) {
        free(listing);
        return code ? code : error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    listing->done = done;
    listing->userdata = userdata;
    own.userdata = listing;
    code = load_begin(&listing->load, member, pool, &own, reterr);
    if (code != BATON_OK) {
        ledger_free(listing->ledger);
        free(listing);
    }
    return code;
}

/* ---- Results --------------------------------------------------------------------------------- */

struct asked {
    pool_result_cb done;
    void *userdata;
    char id[WORK_ID_MAX];
};

static void on_result(void *userdata, int code, const struct provider_value *values, size_t count)
{
    struct asked *asked = userdata;
    struct work_result result = {0};
    struct baton_error error = {0};

    if (code != BATON_OK) {
        (void)error_set(&error, code, "result of \"%s\": %s", asked->id, baton_strerror(code));
    } else if (count == 0 || !values[0].data) {
        code = error_set(&error, BATON_ENOENT, "result of \"%s\": there is none", asked->id);
    } else {
        code = work_result_read(&result, values[0].data, values[0].bytes, &error);
    }
    asked->done(asked->userdata, code, code ? NULL : &result, &error);
    work_result_fini(&result);
    free(asked);
}

int pool_result(struct member *member, const char *pool, const char *id, pool_result_cb done,
                void *userdata, struct baton_error *reterr)
{
    char key[POOL_KEY_MAX];
    int code = pool_name_check(pool, reterr);
    struct asked *asked;

    code = code ? code : check_id(id, reterr);
    if (code != BATON_OK) {
        return code;
    }
    asked = calloc(1, sizeof(*asked));
    if (!asked) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    asked->done = done;
    asked->userdata = userdata;
    memcpy(asked->id, id, strlen(id) + 1);
    key_of(key, pool, 'r', id);
    code = store_get(member, key, on_result, asked, reterr);
    if (code != BATON_OK) {
        free(asked);
    }
    return code;
}

#include "pool/load.h"

#include "member/store.h"
#include "pool/names.h"
#include "work/ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* A part of the submissions: those whose names begin so. */
struct part {
    struct part *next;
    bool is_name; /* the one with exactly this name */
    char key[POOL_KEY_MAX];
};

struct load {
    struct load **handle; /* its owner's; NULL: it was stopped */
    struct member *member;
    struct load_calls calls;
    size_t under_way; /* requests, and the function that makes them */
    struct part *parts;
    struct part part; /* that is being read */
    bool has_ledger;
    int code;
    struct baton_error error;
    size_t prefix_bytes; /* of "work/POOL/" */
    char pool[POOL_NAME_MAX + 1];
};

static void load_free(struct load *load)
{
    while (load->parts) {
        struct part *part = load->parts;

        LL_DELETE(load->parts, part);
        free(part);
    }
    free(load);
}

static void fail(struct load *load, int code, const struct baton_error *error, const char *key)
{
    if (load->code != BATON_OK) {
        return;
    }
    load->code = code;
    if (error && error->message[0]) {
        load->error = *error;
    } else {
        (void)error_set(&load->error, code, "keys \"%.160s\": %s", key, baton_strerror(code));
    }
}

static void pass_on(struct load *load, const struct provider_value *value)
{
    if (load->handle && strlen(value->key) > load->prefix_bytes) {
        load->calls.on_value(load->calls.userdata, value->key + load->prefix_bytes, value);
    }
}

static void finish(struct load *load)
{
    if (load->handle) {
        *load->handle = NULL;
        load->calls.done(load->calls.userdata, load->code, &load->error);
    }
    load_free(load);
}

/* ---- The submissions ------------------------------------------------------------------------- */

static void read_part(struct load *load);

/* The last reply goes on with what comes next. */
static void settle(struct load *load)
{
    if (--load->under_way > 0) {
        return;
    }
    if (!load->handle || load->code != BATON_OK || (load->has_ledger && !load->parts)) {
        finish(load);
        return;
    }
    load->has_ledger = true;
    read_part(load);
}

static void add_part(struct load *load, const char *key, char next, bool is_name)
{
    struct part *part = calloc(1, sizeof(*part));

    if (!part) {
        fail(load, BATON_ENOMEM, NULL, key);
        return;
    }
    part->is_name = is_name;
    (void)snprintf(part->key, sizeof(part->key), "%s%.*s", key, next ? 1 : 0, &next);
    LL_PREPEND(load->parts, part);
}

/* A list may be more than one message of the provider takes: then those with each next character
 * are read by themselves. */
static void divide(struct load *load)
{
    static const char characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "0123456789-_.:/{};@+=,";

    if (load->part.is_name || strlen(load->part.key) + 2 >= sizeof(load->part.key)) {
        fail(load, BATON_ETOOBIG, NULL, load->part.key);
        return;
    }
    for (const char *next = characters; *next; next++) {
        add_part(load, load->part.key, *next, false);
    }
    add_part(load, load->part.key, '\0', true);
}

static void on_part(void *userdata, int code, const struct provider_value *values, size_t count)
{
    struct load *load = userdata;

    if (code == BATON_ETOOBIG) {
        divide(load);
    } else if (code != BATON_OK) {
        fail(load, code, NULL, load->part.key);
    }
    for (size_t i = 0; i < count && code == BATON_OK; i++) {
        if (values[i].data) {
            pass_on(load, &values[i]);
        }
    }
    settle(load);
}

static void read_part(struct load *load)
{
    struct part *part = load->parts;
    struct baton_error error = {0};
    int code;

    load->part = *part;
    LL_DELETE(load->parts, part);
    free(part);
    load->under_way++;
    code = (load->part.is_name ? store_get : store_list)(load->member, load->part.key, on_part,
                                                         load, &error);
    if (code != BATON_OK) {
        fail(load, code, &error, load->part.key);
        settle(load);
    }
}

/* ---- The ledger ------------------------------------------------------------------------------ */

struct reading {
    struct load *load;
    char key[POOL_KEY_MAX];
};

static void on_read(void *userdata, int code, const struct provider_value *values, size_t count)
{
    struct reading *reading = userdata;
    struct load *load = reading->load;

    if (code != BATON_OK) {
        fail(load, code, NULL, reading->key);
    } else {
        struct provider_value value = {.key = reading->key};

        if (count > 0 && values[0].data) {
            value = values[0];
            value.key = reading->key;
        }
        pass_on(load, &value);
    }
    free(reading);
    settle(load);
}

static void read_key(struct load *load, const char *key)
{
    struct reading *reading = calloc(1, sizeof(*reading));
    struct baton_error error = {0};
    int code = BATON_ENOMEM;

    if (reading) {
        reading->load = load;
        pool_key(reading->key, load->pool, key);
        load->under_way++;
        code = store_get(load->member, reading->key, on_read, reading, &error);
    }
    if (code != BATON_OK) {
        fail(load, code, &error, key);
        load->under_way -= reading != NULL;
        free(reading);
    }
}

int load_begin(struct load **ret, struct member *member, const char *pool,
               const struct load_calls *calls, struct baton_error *reterr)
{
    struct load *load = calloc(1, sizeof(*load));
    char key[POOL_KEY_MAX];

    if (!load) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    *ret = load;
    load->handle = ret;
    load->member = member;
    load->calls = *calls;
    (void)snprintf(load->pool, sizeof(load->pool), "%s", pool);
    pool_key(key, pool, "");
    load->prefix_bytes = strlen(key);
    pool_key(key, pool, "s/");
    add_part(load, key, '\0', false);
    load->under_way = 1;
    read_key(load, "ledger");
    for (int i = 0; i < LEDGER_BUCKETS && load->code == BATON_OK; i++) {
        (void)snprintf(key, sizeof(key), "b/%02d", i);
        read_key(load, key);
    }
    settle(load);
    return BATON_OK;
}

void load_stop(struct load *load)
{
    if (load) {
        *load->handle = NULL;
        load->handle = NULL;
    }
}

#include "pool/load.h"

#include "member/store.h"
#include "pool/names.h"

#include <stdlib.h>
#include <string.h>

/* In their order; what follows begins when all before it has come. */
static const struct {
    const char *key;
    bool is_list;
} steps[] = {{"ledger", false}, {"b/", true}, {"s/", true}};

enum { STEPS = sizeof(steps) / sizeof(steps[0]) };

struct load {
    struct load **handle; /* its owner's; NULL: it was stopped */
    struct member *member;
    struct load_calls calls;
    size_t step;
    char pool[POOL_NAME_MAX + 1];
};

static void finish(struct load *load, int code, const struct baton_error *error)
{
    if (load->handle) {
        *load->handle = NULL;
        load->calls.done(load->calls.userdata, code, error);
    }
    free(load);
}

static void pass_on(struct load *load, const struct provider_value *value)
{
    char prefix[POOL_KEY_MAX];
    size_t bytes;

    pool_key(prefix, load->pool, "");
    bytes = strlen(prefix);
    if (load->handle && value->data && strncmp(value->key, prefix, bytes) == 0) {
        load->calls.on_value(load->calls.userdata, value->key + bytes, value);
    }
}

static void go_on(struct load *load);

static void on_values(void *userdata, int code, const struct provider_value *values, size_t count)
{
    struct load *load = userdata;
    struct baton_error error = {0};

    for (size_t i = 0; i < count && code == BATON_OK; i++) {
        pass_on(load, &values[i]);
    }
    if (code != BATON_OK) {
        (void)error_set(&error, code, "keys \"work/%s/%s\": %s", load->pool, steps[load->step].key,
                        baton_strerror(code));
        finish(load, code, &error);
        return;
    }
    load->step++;
    go_on(load);
}

static void go_on(struct load *load)
{
    char key[POOL_KEY_MAX];
    struct baton_error error = {0};
    int code;

    if (load->step == STEPS || !load->handle) {
        finish(load, BATON_OK, NULL);
        return;
    }
    pool_key(key, load->pool, steps[load->step].key);
    code = (steps[load->step].is_list ? store_list : store_get)(load->member, key, on_values, load,
                                                                &error);
    if (code != BATON_OK) {
        finish(load, code, &error);
    }
}

int load_begin(struct load **ret, struct member *member, const char *pool,
               const struct load_calls *calls, struct baton_error *reterr)
{
    struct load *load = calloc(1, sizeof(*load));

    if (!load) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    load->handle = ret;
    load->member = member;
    load->calls = *calls;
    memcpy(load->pool, pool, strlen(pool) + 1);
    *ret = load;
    go_on(load);
    return BATON_OK;
}

void load_stop(struct load *load)
{
    if (load) {
        *load->handle = NULL;
        load->handle = NULL;
    }
}

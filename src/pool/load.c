#include "pool/load.h"

#include "member/store.h"
#include "pool/names.h"

#include <stdlib.h>
#include <string.h>

/* All are asked for at once. Their order is that of the replies (load.h): if it is another one,
 * since one request was made again, nothing of it counts. */
static const struct {
    const char *key;
    bool is_list;
} steps[] = {{"ledger", false}, {"b/", true}, {"s/", true}};

enum { STEPS = sizeof(steps) / sizeof(steps[0]) };

struct asked {
    struct load *load;
    size_t step;
};

struct load {
    struct load **handle; /* its owner's; NULL: it was stopped */
    struct member *member;
    struct load_calls calls;
    struct asked asked[STEPS];
    size_t next;              /* the step whose reply is to come */
    size_t left;              /* replies that have not come, and load_begin() while it asks */
    struct baton_error error; /* of the first that failed */
    char pool[POOL_NAME_MAX + 1];
};

/* A reply came, or all requests were made. */
static void count_off(struct load *load)
{
    if (--load->left > 0) {
        return;
    }
    if (load->handle) {
        *load->handle = NULL;
        load->calls.done(load->calls.userdata, load->error.code, &load->error);
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

static void on_values(void *userdata, int code, const struct provider_value *values, size_t count)
{
    const struct asked *asked = userdata;
    struct load *load = asked->load;

    if (code == BATON_OK && asked->step != load->next++) {
        code = BATON_EUNAVAILABLE;
    }
    for (size_t i = 0; i < count && code == BATON_OK; i++) {
        pass_on(load, &values[i]);
    }
    if (code != BATON_OK && load->error.code == BATON_OK) {
        (void)error_set(&load->error, code, "the keys of pool \"%s\": %s", load->pool,
                        baton_strerror(code));
    }
    count_off(load);
}

static void ask(struct load *load, size_t step)
{
    char key[POOL_KEY_MAX];
    struct baton_error error = {0};

    pool_key(key, load->pool, steps[step].key);
    load->asked[step] = (struct asked){load, step};
    load->left++;
    if ((steps[step].is_list ? store_list : store_get)(load->member, key, on_values,
                                                       &load->asked[step], &error) != BATON_OK) {
        load->error = load->error.code == BATON_OK ? error : load->error;
        load->left--; /* that of load_begin() is left */
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
    load->left = 1;
    for (size_t i = 0; i < STEPS; i++) {
        ask(load, i);
    }
    count_off(load);
    return BATON_OK;
}

void load_stop(struct load *load)
{
    if (load) {
        *load->handle = NULL;
        load->handle = NULL;
    }
}

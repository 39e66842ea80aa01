/* Small keyed values, and messages that are sent and forgotten. */
#include "api/perform.h"
#include "member/store.h"

#include <stdlib.h>
#include <string.h>

/* ---- Reading --------------------------------------------------------------------------------- */

struct read_call {
    struct call base;
    char *key;
    bool is_list;
    struct baton_value *values;
    size_t count;
};

void baton_values_free(struct baton_value *values, size_t count)
{
    for (size_t i = 0; values && i < count; i++) {
        free(values[i].key);
        free(values[i].data);
    }
    free(values);
}

static void drop_read(struct call *base)
{
    struct read_call *call = (struct read_call *)base;

    free(call->key);
    baton_values_free(call->values, call->count);
}

static bool copy_value(struct baton_value *ret, const struct provider_value *value)
{
    ret->revision = value->revision;
    ret->bytes = value->bytes;
    ret->key = strdup(value->key);
    ret->data = value->data ? calloc(1, value->bytes + 1) : NULL;
    if (ret->data && value->bytes > 0) {
        memcpy(ret->data, value->data, value->bytes);
    }
    return ret->key && (ret->data || !value->data);
}

static void on_values(void *userdata, int code, const struct provider_value *values, size_t count)
{
    struct read_call *call = userdata;

    if (code == BATON_OK) {
        call->values = calloc(count + 1, sizeof(*call->values));
        code = call->values ? BATON_OK : BATON_ENOMEM;
        for (size_t i = 0; code == BATON_OK && i < count; i++) {
            call->count++;
            code = copy_value(&call->values[i], &values[i]) ? BATON_OK : BATON_ENOMEM;
        }
    }
    call_finish(&call->base, code, NULL);
}

static void run_read(struct call *base)
{
    struct read_call *call = (struct read_call *)base;
    struct member *member = base->baton->member;
    struct baton_error error = {0};
    int code = call->is_list ? store_list(member, call->key, on_values, call, &error)
                             : store_get(member, call->key, on_values, call, &error);

    if (code != BATON_OK) {
        call_finish(base, code, &error);
    }
}

static int read_keys(struct baton *baton, const char *key, bool is_list, struct baton_value **ret,
                     size_t *ret_count, struct baton_error *reterr)
{
    struct read_call *call;
    int code = check_owner(baton, reterr);

    if (code != BATON_OK) {
        return code;
    }
    call = call_new(baton, sizeof(*call), run_read);
    if (call) {
        call->base.drop = drop_read;
        call->key = strdup(key);
        call->is_list = is_list;
    }
    if (!call || !call->key) {
        code = error_set(reterr, BATON_ENOMEM, "key \"%.60s\": out of memory", key);
    } else {
        code = perform(&call->base, BATON_TIMEOUT_DEFAULT, BATON_EDEADLK, reterr);
    }
    if (code == BATON_OK) {
        *ret = call->values;
        *ret_count = call->count;
        call->values = NULL;
        call->count = 0;
    }
    if (call) {
        call_unref(&call->base);
    }
    return code;
}

int baton_get(struct baton *baton, const char *key, struct baton_value **ret,
              struct baton_error *reterr)
{
    struct baton_value *values;
    size_t count;
    int code = read_keys(baton, key, false, &values, &count, reterr);

    if (code != BATON_OK) {
        return code;
    }
    if (count != 1 || !values[0].data) {
        baton_values_free(values, count);
        return error_set(reterr, BATON_ENOENT, "key \"%.60s\": there is none", key);
    }
    *ret = values;
    return BATON_OK;
}

int baton_list(struct baton *baton, const char *prefix, struct baton_value **ret, size_t *ret_count,
               struct baton_error *reterr)
{
    return read_keys(baton, prefix, true, ret, ret_count, reterr);
}

/* ---- Writing --------------------------------------------------------------------------------- */

struct write_call {
    struct call base;
    char *name; /* of a key or a channel */
    void *data; /* NULL: delete */
    size_t bytes;
    uint64_t revision; /* at which the key has to be */
    uint64_t written;  /* its revision after the write */
    span lifetime;
    bool is_message;
};

static void drop_write(struct call *base)
{
    struct write_call *call = (struct write_call *)base;

    free(call->name);
    free(call->data);
}

static void on_put(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    struct write_call *call = userdata;

    call->written = revision;
    call_finish(&call->base, code, error);
}

static void run_write(struct call *base)
{
    struct write_call *call = (struct write_call *)base;
    struct member *member = base->baton->member;
    struct baton_error error = {0};
    int code = call->is_message ? store_publish(member, call->name, call->data, call->bytes,
                                                call_done, call, &error)
                                : store_put(member, call->name, call->data, call->bytes,
                                            call->revision, call->lifetime, on_put, call, &error);

    if (code != BATON_OK) {
        call_finish(base, code, &error);
    }
}

static struct write_call *write_new(struct baton *baton, const char *name, const void *data,
                                    size_t bytes)
{
    struct write_call *call = call_new(baton, sizeof(*call), run_write);

    if (!call) {
        return NULL;
    }
    call->base.drop = drop_write;
    call->name = strdup(name);
    call->data = data ? malloc(bytes + 1) : NULL;
    call->bytes = bytes;
    if (!call->name || (data && !call->data)) {
        call_unref(&call->base);
        return NULL;
    }
    if (call->data && bytes > 0) {
        memcpy(call->data, data, bytes);
    }
    return call;
}

/* ret_revision NULL: it is not wanted. */
static int perform_write(struct write_call *call, const char *name, uint64_t *ret_revision,
                         struct baton_error *reterr)
{
    int code;

    if (!call) {
        return error_set(reterr, BATON_ENOMEM, "\"%.60s\": out of memory", name);
    }
    code = perform(&call->base, BATON_TIMEOUT_DEFAULT, BATON_OK, reterr);
    if (code == BATON_OK && ret_revision) {
        *ret_revision = call->written;
    }
    call_unref(&call->base);
    return code;
}

int baton_put(struct baton *baton, const char *key, const void *data, size_t bytes,
              uint64_t revision, int64_t lifetime_ms, struct baton_error *reterr)
{
    return baton_put_revision(baton, key, data, bytes, revision, lifetime_ms, NULL, reterr);
}

int baton_put_revision(struct baton *baton, const char *key, const void *data, size_t bytes,
                       uint64_t revision, int64_t lifetime_ms, uint64_t *ret_revision,
                       struct baton_error *reterr)
{
    struct write_call *call;
    int code = check_owner(baton, reterr);

    if (code == BATON_OK && ret_revision && on_loop(baton)) {
        code = perform_refuse(reterr); /* before it begins: the revision could not be returned */
    }
    if (code == BATON_OK && (lifetime_ms < 0 || lifetime_ms > INT64_MAX / 1000000)) {
        code = error_set(reterr, BATON_EINVAL,
                         "key \"%.60s\": a lifetime of %lld ms: must be 0 (no end) to %lld", key,
                         (long long)lifetime_ms, (long long)(INT64_MAX / 1000000));
    }
    if (code != BATON_OK) {
        return code;
    }
    call = write_new(baton, key, data, bytes);
    if (call) {
        call->revision = revision;
        call->lifetime = SPAN_MS(lifetime_ms);
    }
    return perform_write(call, key, ret_revision, reterr);
}

int baton_publish(struct baton *baton, const char *channel, const void *data, size_t bytes,
                  struct baton_error *reterr)
{
    struct write_call *call;
    int code = check_owner(baton, reterr);

    if (code != BATON_OK) {
        return code;
    }
    call = write_new(baton, channel, data ? data : "", bytes);
    if (call) {
        call->is_message = true;
    }
    return perform_write(call, channel, NULL, reterr);
}

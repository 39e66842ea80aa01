/* Reads and writes whose replies a pool that was closed does not get. */
#include "pool/pool_int.h"

#include "member/store.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Reads that are asked as one. */
struct batch {
    size_t count;
    size_t prefix_bytes; /* of "work/POOL/" */
    struct request *requests[PROVIDER_EACH_MAX];
};

struct request {
    struct pool *pool; /* NULL: it was closed */
    struct request *prev, *next;
    reply_cb done;
    uint64_t tag;
    size_t bytes; /* that were sent */
    char key[];   /* without "work/POOL/" */
};

static void settle(struct request *request, const struct reply *reply)
{
    struct pool *pool = request->pool;

    if (pool) {
        DL_DELETE(pool->requests, request);
        request->done(pool, request->key, request->tag, reply);
    }
    free(request);
}

static void on_got(void *userdata, int code, const struct provider_value *values, size_t count)
{
    bool is_there = code == BATON_OK && count > 0 && values[0].data;
    struct baton_error error = {.code = code};
    struct reply reply = {.code = code, .error = &error};

    if (code != BATON_OK) {
        (void)error_set(&error, code, "key \"%.160s\": %s", ((struct request *)userdata)->key,
                        baton_strerror(code));
    }
    if (is_there) {
        reply.revision = values[0].revision;
        reply.data = values[0].data;
        reply.bytes = values[0].bytes;
    }
    settle(userdata, &reply);
}

static void on_put(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    struct request *request = userdata;
    struct reply reply = {
        .code = code, .error = error, .revision = revision, .bytes = request->bytes};

    settle(request, &reply);
}

static void on_published(void *userdata, int code, const struct baton_error *error)
{
    on_put(userdata, code, 0, error);
}

static struct request *request_new(struct pool *pool, const char *key, uint64_t tag, size_t sent,
                                   reply_cb done)
{
    size_t bytes = strlen(key) + 1;
    struct request *request = calloc(1, sizeof(*request) + bytes);

    if (request) {
        request->pool = pool;
        request->done = done;
        request->tag = tag;
        request->bytes = sent;
        memcpy(request->key, key, bytes);
        DL_APPEND(pool->requests, request);
    }
    return request;
}

/* Without a request there is no memory for it. */
static void refuse(struct pool *pool, struct request *request, const char *key, uint64_t tag,
                   reply_cb done, const struct reply *reply)
{
    if (request) {
        settle(request, reply);
    } else {
        done(pool, key, tag, reply);
    }
}

static void get(struct pool *pool, struct request *request)
{
    struct baton_error error = {0};
    struct reply reply = {.error = &error};
    char full[POOL_KEY_MAX];

    pool_key(full, pool->name, request->key);
    reply.code = store_get(pool->member, full, on_got, request, &error);
    if (reply.code != BATON_OK) {
        settle(request, &reply);
    }
}

static void refuse_get(struct pool *pool, struct request *request, const char *key, uint64_t tag,
                       reply_cb done)
{
    struct baton_error error;
    struct reply reply = {.error = &error};

    reply.code = error_set(&error, BATON_ENOMEM, "out of memory");
    refuse(pool, request, key, tag, done, &reply);
}

void request_get(struct pool *pool, const char *key, uint64_t tag, reply_cb done)
{
    struct request *request = request_new(pool, key, tag, 0, done);

    if (request) {
        get(pool, request);
    } else {
        refuse_get(pool, NULL, key, tag, done);
    }
}

void request_put(struct pool *pool, const char *key, uint64_t tag, const void *data, size_t bytes,
                 uint64_t revision, span lifetime, reply_cb done)
{
    struct request *request = request_new(pool, key, tag, bytes, done);
    struct baton_error error = {0};
    struct reply reply = {.error = &error, .bytes = bytes};
    char full[POOL_KEY_MAX];

    pool_key(full, pool->name, key);
    reply.code = request ? store_put(pool->member, full, data, bytes, revision, lifetime, on_put,
                                     request, &error)
                         : error_set(&error, BATON_ENOMEM, "out of memory");
    if (reply.code != BATON_OK) {
        refuse(pool, request, key, tag, done, &reply);
    }
}

void request_publish(struct pool *pool, const char *name, uint64_t tag, const void *data,
                     size_t bytes, reply_cb done)
{
    struct request *request = request_new(pool, name, tag, bytes, done);
    struct baton_error error = {0};
    struct reply reply = {.error = &error, .bytes = bytes};
    char channel[POOL_KEY_MAX];

    pool_key(channel, pool->name, name);
    reply.code =
        request ? store_publish(pool->member, channel, data, bytes, on_published, request, &error)
                : error_set(&error, BATON_ENOMEM, "out of memory");
    if (reply.code != BATON_OK) {
        refuse(pool, request, name, tag, done, &reply);
    }
}

/* ---- Many reads ------------------------------------------------------------------------------ */

static const struct provider_value *find(const struct provider_value *values, size_t count,
                                         size_t prefix_bytes, const char *key)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(values[i].key) > prefix_bytes &&
            strcmp(values[i].key + prefix_bytes, key) == 0) {
            return &values[i];
        }
    }
    return NULL;
}

static void on_got_each(void *userdata, int code, const struct provider_value *values, size_t count)
{
    struct batch *batch = userdata;

    for (size_t i = 0; i < batch->count; i++) {
        struct request *request = batch->requests[i];
        const struct provider_value *value = find(values, count, batch->prefix_bytes, request->key);

        on_got(request, code, value, value != NULL);
    }
    free(batch);
}

void requests_flush(struct pool *pool)
{
    struct batch *batch = pool->gathered;
    char keys[PROVIDER_EACH_MAX][POOL_KEY_MAX];
    const char *each[PROVIDER_EACH_MAX];
    int code;

    if (!batch) {
        return;
    }
    pool->gathered = NULL;
    if (batch->count == 1) {
        get(pool, batch->requests[0]);
        free(batch);
        return;
    }
    for (size_t i = 0; i < batch->count; i++) {
        pool_key(keys[i], pool->name, batch->requests[i]->key);
        each[i] = keys[i];
    }
    batch->prefix_bytes = strlen(keys[0]) - strlen(batch->requests[0]->key);
    code = store_get_each(pool->member, each, batch->count, on_got_each, batch, NULL);
    if (code != BATON_OK) {
        on_got_each(batch, code, NULL, 0);
    }
}

void request_gather(struct pool *pool, const char *key, uint64_t tag, reply_cb done)
{
    struct request *request = request_new(pool, key, tag, 0, done);

    if (!pool->gathered) {
        pool->gathered = calloc(1, sizeof(*pool->gathered));
    }
    if (!request || !pool->gathered) {
        refuse_get(pool, request, key, tag, done);
        return;
    }
    pool->gathered->requests[pool->gathered->count++] = request;
    if (pool->gathered->count == PROVIDER_EACH_MAX) {
        requests_flush(pool);
    }
}

static void forget_gathered(struct pool *pool)
{
    for (size_t i = 0; pool->gathered && i < pool->gathered->count; i++) {
        DL_DELETE(pool->requests, pool->gathered->requests[i]);
        free(pool->gathered->requests[i]);
    }
    free(pool->gathered);
    pool->gathered = NULL;
}

void requests_drop(struct pool *pool)
{
    forget_gathered(pool);
    while (pool->requests) {
        struct request *request = pool->requests;

        DL_DELETE(pool->requests, request);
        request->pool = NULL;
    }
}

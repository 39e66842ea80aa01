/* Reads and writes whose replies a pool that was closed does not get. */
#include "pool/pool_int.h"

#include "member/store.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct request {
    struct pool *pool; /* NULL: it was closed */
    struct request *prev, *next;
    reply_cb done;
    uint64_t tag;
    size_t bytes; /* that were sent */
    char key[];
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

void request_get(struct pool *pool, const char *key, uint64_t tag, reply_cb done)
{
    struct request *request = request_new(pool, key, tag, 0, done);
    struct baton_error error = {0};
    struct reply reply = {.error = &error};
    char full[POOL_KEY_MAX];

    pool_key(full, pool->name, key);
    reply.code = request ? store_get(pool->member, full, on_got, request, &error)
                         : error_set(&error, BATON_ENOMEM, "out of memory");
    if (reply.code != BATON_OK) {
        refuse(pool, request, key, tag, done, &reply);
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

void requests_drop(struct pool *pool)
{
    while (pool->requests) {
        struct request *request = pool->requests;

        DL_DELETE(pool->requests, request);
        request->pool = NULL;
    }
}

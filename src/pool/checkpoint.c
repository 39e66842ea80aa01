/* What attempts store for the next one: key "k/ID", the attempt's epoch and the caller's bytes.
 *
 *   u64 epoch | bytes
 *
 * It is written by compare-and-set at the revision that this attempt knows. After a conflict it is
 * read: a value of a later epoch means that this attempt is stale, any other one is replaced.
 */
#include "pool/pool_int.h"

#include <stdlib.h>
#include <string.h>

enum { EPOCH_BYTES = 8, RETRY_MS = 1000, KEY_MAX = WORK_ID_MAX + 2 };

static void key_of(char ret[static KEY_MAX], const char *id)
{
    ret[0] = 'k';
    ret[1] = '/';
    memcpy(ret + 2, id, strlen(id) + 1);
}

/* NULL: it has ended. */
static struct copy *copy_of(const struct pool *pool, const char *key, uint64_t serial)
{
    struct copy *copy = worker_copy(pool, key + 2);

    return copy && copy->serial == serial ? copy : NULL;
}

static uint64_t epoch_in(const struct reply *reply)
{
    struct reader reader = reader_of(reply->data, reply->bytes);

    return reader_u64(&reader);
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* A value that is too short is none. One that is there at a first attempt was stored late for an
 * earlier item of the id. */
static void on_read(struct pool *pool, const char *key, uint64_t serial, const struct reply *reply)
{
    struct copy *copy = copy_of(pool, key, serial);
    bool is_there;

    if (!copy || copy->is_started) {
        return;
    }
    is_there = copy->attempt > 1 && reply->data && reply->bytes >= EPOCH_BYTES;
    if (reply->code != BATON_OK) {
        copy->read_at = instant_add(clock_now(), SPAN_MS(RETRY_MS));
        pool_complain(pool, reply->error);
        pool_rearm(pool);
        return;
    }
    copy->revision = reply->revision;
    worker_start(pool, copy, is_there ? (const uint8_t *)reply->data + EPOCH_BYTES : NULL,
                 is_there ? reply->bytes - EPOCH_BYTES : 0);
}

void checkpoint_read(struct pool *pool, const struct copy *copy)
{
    char key[KEY_MAX];

    key_of(key, copy->id);
    request_gather(pool, key, copy->serial, on_read);
}

/* ---- Storing --------------------------------------------------------------------------------- */

static void finish(struct copy *copy, int code, const struct baton_error *error)
{
    provider_done_cb done = copy->done;

    free(copy->storing);
    copy->storing = NULL;
    copy->done = NULL;
    if (done) {
        done(copy->userdata, code, error);
    }
}

void checkpoint_drop(struct copy *copy)
{
    struct baton_error error;

    if (copy->storing) {
        (void)error_set(&error, BATON_ECANCELED, "checkpoint of \"%s\": the attempt has ended",
                        copy->id);
        finish(copy, BATON_ECANCELED, &error);
    }
}

static void store(struct pool *pool, struct copy *copy);

static void give_up(struct pool *pool, struct copy *copy, uint64_t later)
{
    struct baton_error error;
    provider_done_cb done = copy->done;
    void *userdata = copy->userdata;

    (void)error_set(&error, BATON_ELOST,
                    "checkpoint of \"%s\": the attempt of epoch %llu has stored one, and this is "
                    "that of epoch %llu",
                    copy->id, (unsigned long long)later, (unsigned long long)copy->epoch);
    copy->done = NULL;
    finish(copy, BATON_ELOST, &error);
    worker_halt(pool, copy); /* the copy may have ended then */
    if (done) {
        done(userdata, BATON_ELOST, &error);
    }
}

/* Somebody else has stored one, or this attempt has, and the reply was lost. */
static void on_compared(struct pool *pool, const char *key, uint64_t serial,
                        const struct reply *reply)
{
    struct copy *copy = copy_of(pool, key, serial);
    uint64_t stored = reply->code == BATON_OK ? epoch_in(reply) : 0;

    if (!copy || !copy->storing) {
        return;
    }
    if (reply->code != BATON_OK) {
        finish(copy, reply->code, reply->error);
    } else if (stored > copy->epoch) {
        give_up(pool, copy, stored);
    } else {
        copy->revision = reply->revision;
        store(pool, copy);
    }
}

static void on_stored(struct pool *pool, const char *key, uint64_t serial,
                      const struct reply *reply)
{
    struct copy *copy = copy_of(pool, key, serial);

    if (!copy || !copy->storing) {
        return;
    }
    if (reply->code == BATON_ECONFLICT) {
        request_get(pool, key, serial, on_compared);
        return;
    }
    if (reply->code == BATON_OK) {
        copy->revision = reply->revision;
    }
    finish(copy, reply->code, reply->code == BATON_OK ? NULL : reply->error);
}

static void store(struct pool *pool, struct copy *copy)
{
    char key[KEY_MAX];

    key_of(key, copy->id);
    request_put(pool, key, copy->serial, copy->storing, copy->storing_bytes, copy->revision,
                SPAN_NS(0), on_stored);
}

int pool_checkpoint(struct pool *pool, const char *id, uint64_t epoch, const void *data,
                    size_t bytes, provider_done_cb done, void *userdata, struct baton_error *reterr)
{
    struct copy *copy = worker_copy(pool, id);
    struct buffer value;

    if (!copy || !copy->is_started || copy->epoch != epoch) {
        return error_set(reterr, BATON_ENOENT, "checkpoint of \"%.128s\": it does not run here",
                         id);
    }
    if (copy->storing) {
        return error_set(reterr, BATON_EBUSY,
                         "checkpoint of \"%s\": the one before is still being stored", id);
    }
    if (bytes > POOL_CHECKPOINT_MAX) {
        return error_set(reterr, BATON_ETOOBIG, "checkpoint of \"%s\": %zu bytes; %d is the most",
                         id, bytes, POOL_CHECKPOINT_MAX);
    }
    buffer_init(&value, POOL_CHECKPOINT_MAX + EPOCH_BYTES);
    buffer_put_u64(&value, epoch);
    buffer_put(&value, data, bytes);
    if (value.failed) {
        buffer_fini(&value);
        return error_set(reterr, BATON_ENOMEM, "checkpoint of \"%s\": out of memory", id);
    }
    copy->storing = value.data; /* taken */
    copy->storing_bytes = value.bytes;
    copy->done = done;
    copy->userdata = userdata;
    store(pool, copy);
    return BATON_OK;
}

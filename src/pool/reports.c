/* What workers report on the leader's channel.
 *
 * The leader takes it at once. Other candidates only note whom they have heard, and read what came
 * a moment later and a few at a time: when a new leader asks, all workers report together, and it
 * needs the processors of this host more.
 */
#include "pool/pool_int.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    READ_AFTER_MS = 50,
    READ_AT_ONCE = 32,
    UNREAD_BYTES_MAX = 4 * 1024 * 1024, /* what is more is read when it comes */
};

/* A message that was not read yet. */
struct unread {
    struct unread *prev, *next;
    size_t bytes;
    uint8_t data[];
};

/* The worker that the message is from, if its name can be one. */
static bool is_from_worker(const struct pool *pool, const struct work_message *message)
{
    const char *worker = message->type == WORK_REPORT ? message->report.worker
                         : message->type == WORK_DONE ? message->worker
                                                      : "";

    return pool_worker_check(pool->name, worker, NULL) == BATON_OK;
}

static void read_one(struct pool *pool, const void *data, size_t bytes)
{
    struct work_message message = {0};

    if (work_message_read(&message, data, bytes, NULL) != BATON_OK) {
        return;
    }
    if (is_from_worker(pool, &message)) {
        if (message.type == WORK_REPORT) {
            heard_note(&pool->heard, &message.report, clock_now());
        }
        lead_hear(pool, &message);
    }
    work_message_fini(&message);
}

static bool keep(struct pool *pool, const void *data, size_t bytes)
{
    struct unread *unread =
        pool->unread_bytes + bytes <= UNREAD_BYTES_MAX ? malloc(sizeof(*unread) + bytes) : NULL;

    if (!unread) {
        return false;
    }
    unread->bytes = bytes;
    memcpy(unread->data, data, bytes);
    if (!pool->unread) {
        pool->read_at = instant_add(clock_now(), SPAN_MS(READ_AFTER_MS));
        pool_rearm(pool);
    }
    DL_APPEND(pool->unread, unread);
    pool->unread_bytes += bytes;
    return true;
}

void reports_take(struct pool *pool, const void *data, size_t bytes)
{
    if (pool->lead || !keep(pool, data, bytes)) {
        read_one(pool, data, bytes);
    }
}

static struct unread *take_first(struct pool *pool)
{
    struct unread *unread = pool->unread;

    DL_DELETE(pool->unread, unread);
    pool->unread_bytes -= unread->bytes;
    return unread;
}

void reports_read(struct pool *pool, size_t most)
{
    for (; pool->unread && most > 0; most--) {
        struct unread *unread = take_first(pool);

        read_one(pool, unread->data, unread->bytes);
        free(unread);
    }
    pool->read_at = pool->unread ? instant_add(clock_now(), SPAN_MS(READ_AFTER_MS)) : INSTANT_NEVER;
}

void reports_tick(struct pool *pool, instant now)
{
    if (!instant_before(now, pool->read_at)) {
        reports_read(pool, READ_AT_ONCE);
    }
}

void reports_drop(struct pool *pool)
{
    while (pool->unread) {
        free(take_first(pool));
    }
}

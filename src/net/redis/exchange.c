/* Commands, the callbacks that wait for their replies, and replies in order. */
#include "net/redis/redis_int.h"

#include <stdlib.h>
#include <string.h>

enum {
    PENDING_MAX = 1 << 20,
    PENDING_FIRST = 64,
    FLUSH_BYTES = 64 * 1024, /* so many bytes are written at once, before the turn ends */
};

struct pending {
    redis_reply_cb on_reply;
    void *userdata;
    uint64_t tag;
    instant sent;
};

/* ---- Those who wait -------------------------------------------------------------------------- */

static int resize(struct redis *redis, size_t wanted)
{
    struct pending *moved = wanted <= PENDING_MAX ? malloc(wanted * sizeof(*moved)) : NULL;

    if (!moved) {
        return wanted <= PENDING_MAX ? BATON_ENOMEM : BATON_EBUSY;
    }
    for (size_t i = 0; i < redis->count; i++) {
        moved[i] = redis->pending[(redis->first + i) % redis->capacity];
    }
    free(redis->pending);
    redis->pending = moved;
    redis->capacity = wanted;
    redis->first = 0;
    return BATON_OK;
}

static int push(struct redis *redis, redis_reply_cb on_reply, void *userdata, uint64_t tag)
{
    if (redis->count == redis->capacity) {
        int r = resize(redis, redis->capacity ? redis->capacity * 2 : PENDING_FIRST);
        if (r != BATON_OK) {
            return r;
        }
    }
    redis->pending[(redis->first + redis->count++) % redis->capacity] = (struct pending){
        .on_reply = on_reply, .userdata = userdata, .tag = tag, .sent = clock_now()};
    return BATON_OK;
}

static struct pending pop(struct redis *redis)
{
    struct pending oldest = redis->pending[redis->first];

    redis->first = (redis->first + 1) % redis->capacity;
    redis->count--;
    if (redis->capacity > PENDING_FIRST && redis->count < redis->capacity / 8) {
        (void)resize(redis, redis->capacity /
                                4); /* the burst is over; if this fails, the ring stays large */
    }
    return oldest;
}

void redis_fail_all(struct redis *redis)
{
    for (size_t left = redis->count; left > 0 && redis->count > 0; left--) {
        struct pending oldest = pop(redis);
        oldest.on_reply(oldest.userdata, oldest.tag, NULL, oldest.sent);
    }
}

/* ---- Sending --------------------------------------------------------------------------------- */

/* Writes no more than the socket accepts: the rest stays here, which saves a copy for each
 * write. */
static void on_flush(uv_prepare_t *prepare)
{
    struct redis *redis = prepare->data;
    const void *data;
    size_t bytes;

    while (redis->stream && !stream_has_backlog(redis->stream) &&
           (data = outbox_first(&redis->output, &bytes))) {
        (void)stream_write(redis->stream, data, bytes);
        outbox_drop_first(&redis->output);
    }
    if (redis->output.bytes == 0) {
        (void)uv_prepare_stop(prepare);
    }
}

void redis_flush(struct redis *redis)
{
    on_flush(&redis->flush);
}

static void on_overdue(uv_timer_t *timer)
{
    struct redis *redis = timer->data;
    instant due;

    if (redis->count == 0) {
        return;
    }
    due = instant_add(redis->pending[redis->first].sent, redis->answer_timeout);
    if (instant_before(clock_now(), due)) {
        redis_arm_timer(redis, on_overdue, instant_since(due, clock_now()).ns / 1000000 + 1);
    } else {
        redis_take_down(redis, BATON_ETIMEDOUT, "no answer in time");
    }
}

static int format(struct redis *redis, int count, const char **arguments, const size_t *lengths)
{
    char *text = NULL;
    bool has_room;
    int bytes = redisFormatCommandArgv(&text, count, arguments, lengths);

    if (bytes < 0) {
        return BATON_ENOMEM;
    }
    has_room = outbox_put(&redis->output, text, (size_t)bytes);
    redisFreeCommand(text);
    return has_room ? BATON_OK : BATON_EBUSY;
}

int redis_send(struct redis *redis, int count, const char **arguments, const size_t *lengths,
               redis_reply_cb on_reply, void *userdata, uint64_t tag)
{
    int code;

    if (redis->output.bytes > QUEUE_BYTES_MAX / 2) {
        return BATON_EBUSY;
    }
    code = on_reply ? push(redis, on_reply, userdata, tag) : BATON_OK;
    if (code != BATON_OK) {
        return code;
    }
    code = format(redis, count, arguments, lengths);
    if (code != BATON_OK) {
        redis->count -= on_reply != NULL; /* removes the one just pushed */
        redis_take_down(redis, code, "out of memory");
        return code;
    }
    (void)uv_prepare_start(&redis->flush, on_flush);
    if (redis->output.bytes >= FLUSH_BYTES && !stream_has_backlog(redis->stream)) {
        on_flush(&redis->flush);
    }
    if (on_reply && redis->count == 1) {
        redis_arm_timer(redis, on_overdue, redis->answer_timeout.ns / 1000000 + 1);
    }
    return BATON_OK;
}

int redis_command(struct redis *redis, int count, const char **arguments, const size_t *lengths,
                  redis_reply_cb on_reply, void *userdata, uint64_t tag)
{
    return redis->state == UP
               ? redis_send(redis, count, arguments, lengths, on_reply, userdata, tag)
               : BATON_EUNAVAILABLE;
}

enum { ARGUMENTS_BEFORE = 3 };

int redis_run(struct redis *redis, const struct redis_script *script, int key_count, int count,
              const char **arguments, const size_t *lengths, redis_reply_cb on_reply,
              void *userdata, uint64_t tag)
{
    const char *all[ARGUMENTS_BEFORE + REDIS_ARGUMENTS_MAX];
    size_t all_lengths[ARGUMENTS_BEFORE + REDIS_ARGUMENTS_MAX];
    char number[12];

    if (count > REDIS_ARGUMENTS_MAX || !script->sha[0]) {
        return BATON_EINVAL;
    }
    (void)snprintf(number, sizeof(number), "%d", key_count);
    all[0] = "EVALSHA";
    all[1] = script->sha;
    all[2] = number;
    for (int i = 0; i < ARGUMENTS_BEFORE; i++) {
        all_lengths[i] = strlen(all[i]);
    }
    for (int i = 0; i < count; i++) {
        all[ARGUMENTS_BEFORE + i] = arguments[i];
        all_lengths[ARGUMENTS_BEFORE + i] = lengths ? lengths[i] : strlen(arguments[i]);
    }
    return redis_command(redis, ARGUMENTS_BEFORE + count, all, all_lengths, on_reply, userdata,
                         tag);
}

/* ---- Receiving ------------------------------------------------------------------------------- */

static void take_message(struct redis *redis, const redisReply *reply)
{
    const char *channel;
    const char *data;
    size_t bytes;

    redis->has_heard = true;
    (void)uv_timer_stop(&redis->timer);
    if (reply->type == REDIS_REPLY_ERROR) {
        redis_refuse(redis, reply);
        return;
    }
    if (redis_parse_message(reply, &channel, &data, &bytes)) {
        redis->callbacks.on_message(redis->userdata, channel, data, bytes);
    }
}

static void take_reply(struct redis *redis, const redisReply *reply)
{
    if (redis->state == UP && reply->type != REDIS_REPLY_ERROR) {
        redis->retry_ms =
            RETRY_MIN_MS; /* only now: an early reset would make refused connections retry fast */
    }
    if (redis->state == UP && redis->callbacks.on_message) {
        take_message(redis, reply);
    } else if (redis->count == 0) {
        redis_take_down(redis, BATON_EPROTO, "an answer that nobody asked for");
    } else {
        struct pending oldest = pop(redis);
        if (redis_fault_of(reply) == REDIS_NOSCRIPT && redis->state == UP) {
            redis_load_scripts(redis);
        }
        oldest.on_reply(oldest.userdata, oldest.tag, reply, oldest.sent);
        if (redis_fault_of(reply) == REDIS_READONLY && redis->state == UP) {
            /* A new connection may reach the master, by DNS or by Sentinels. */
            redis_take_down(redis, BATON_EUNAVAILABLE,
                            "READONLY: it is a replica, and not the master");
        }
        if (redis->count > 0 && !uv_is_active((uv_handle_t *)&redis->timer)) {
            redis_arm_timer(redis, on_overdue, redis->answer_timeout.ns / 1000000 + 1);
        }
    }
}

void redis_take_data(struct stream *stream, const void *data, size_t bytes, void *userdata)
{
    struct redis *redis = userdata;
    redisReply *reply = NULL;
    (void)stream;

    redis->is_mute = false;
    if (!redis_reader_feed(&redis->reader, data, bytes)) {
        redis_take_down(redis, BATON_EPROTO, "an answer larger than 64 MiB");
        return;
    }
    while (redis->stream && redis->error.code == BATON_OK) {
        if (!redis_reader_next(&redis->reader, &reply)) {
            redis_take_down(redis, BATON_EPROTO,
                            "what it answers is not the Redis protocol, or too much");
            return;
        }
        if (!reply) {
            return;
        }
        take_reply(redis, reply);
        freeReplyObject(reply);
    }
}

/* The fields of a connection; a header for the files of this folder only.
 *
 * redis.c has the connection's life (connecting, greeting, checking, going down), exchange.c its
 * commands and replies. */
#ifndef NET_REDIS_REDIS_INT_H
#define NET_REDIS_REDIS_INT_H

#include "base/buffer.h"
#include "net/redis/outbox.h"
#include "net/redis/reader.h"
#include "net/redis/redis.h"
#include "net/stream.h"
#include "net/tls.h"

enum {
    QUEUE_BYTES_MAX = 64 * 1024 * 1024,
    RETRY_MIN_MS = 20,
    RETRY_MAX_MS = 2000,
};

enum state { WAITING, CONNECTING, GREETING, UP, CLOSING };

struct pending; /* exchange.c */
struct channel; /* redis.c */

struct redis {
    uv_loop_t *loop;
    struct logger *logger;
    struct redis_address address;
    struct tls *tls; /* NULL: plain text */
    char name[REDIS_ID_MAX];
    span answer_timeout;
    struct redis_script *scripts;
    size_t script_count;
    struct redis_callbacks callbacks;
    void *userdata;

    enum state state;
    struct stream *stream;
    struct redis_reader reader;
    struct redis_identity identity;
    struct baton_error error; /* the reason why it goes down */
    int64_t retry_ms;
    unsigned overdue; /* attempts to connect that were given up */
    uv_timer_t timer; /* the next attempt, or the deadline of the oldest command */
    uv_timer_t look;
    bool wants_master;
    bool has_heard; /* of a subscriber: data came since the last check */
    bool is_mute;   /* no byte has come on this connection */
    uv_prepare_t flush;
    struct outbox output;
    /* A ring of commands that wait for a reply, the oldest first. */
    struct pending *pending;
    size_t first, count, capacity;
    struct channel *channels;
    int open_handles;
    void (*closed)(void *userdata);
    void *closed_userdata;
};

/* redis.c */
void redis_arm_timer(struct redis *redis, uv_timer_cb on_timer, int64_t ms);
/* Begins to close the stream; its on_close does the rest. */
void redis_take_down(struct redis *redis, int code, const char *reason);
void redis_refuse(struct redis *redis, const redisReply *reply); /* the reply is the reason */
void redis_load_scripts(struct redis *redis);

/* exchange.c */
/* As redis_command(), in any state of the connection. on_reply NULL: the command has no reply of
 * its own. */
int redis_send(struct redis *redis, int count, const char **arguments, const size_t *lengths,
               redis_reply_cb on_reply, void *userdata, uint64_t tag);
void redis_take_data(struct stream *stream, const void *data, size_t bytes, void *userdata);
void redis_fail_all(struct redis *redis); /* answers all waiting commands with NULL */

#endif

/* What a connection is made of. Inner header: for the files of this folder.
 *
 * redis.c has its life (connecting, greeting, looking, going down), exchange.c what travels on it:
 * commands, those who wait, answers. */
#ifndef NET_REDIS_CONNECTION_H
#define NET_REDIS_CONNECTION_H

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
    struct tls *tls; /* NULL: in the clear */
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
    struct baton_error error; /* why it goes down */
    int64_t retry_ms;
    uv_timer_t timer; /* the next try, or the oldest answer's deadline */
    uv_timer_t look;
    bool wants_master;
    bool has_heard; /* a subscriber's: something came since the last look */
    bool is_mute;   /* the server's side of this connection: not a byte came */
    uv_prepare_t flush;
    struct outbox output;
    /* A ring of those who wait for an answer, oldest first. */
    struct pending *pending;
    size_t first, count, capacity;
    struct channel *channels;
    int open_handles;
    void (*closed)(void *userdata);
    void *closed_userdata;
};

/* redis.c */
void redis_arm_timer(struct redis *redis, uv_timer_cb on_timer, int64_t ms);
/* The stream tells its end by its on_close; everything goes on there. */
void redis_take_down(struct redis *redis, int code, const char *reason);
void redis_refuse(struct redis *redis, const redisReply *reply); /* what it says is why it ends */
void redis_load_scripts(struct redis *redis);

/* exchange.c */
/* As redis_command(), in any state. on_reply may be NULL: there will be no answer of its own. */
int redis_send_words(struct redis *redis, int count, const char **words, const size_t *lengths,
                     redis_reply_cb on_reply, void *userdata, uint64_t tag);
void redis_take_data(struct stream *stream, const void *data, size_t bytes, void *userdata);
void redis_fail_all(struct redis *redis); /* those who wait are answered with NULL */

#endif

/* A connection to one Redis or Valkey server that keeps itself up, on a libuv loop.
 *
 *   redis_open ─▶ connects, greets (AUTH, SELECT, INFO, scripts) ─▶ on_up ─▶ commands …
 *                     ▲                                                        │
 *                     └──── waits, longer each time, with chance ◀── on_down ──┘
 *
 * Commands are pipelined: those of one turn of the loop leave in one write, and each is answered in
 * turn. One that has no answer in time takes the connection down, since no later one could be told
 * apart. A subscriber's connection (on_message is set) takes subscriptions in place of commands,
 * and makes them anew after each greeting.
 *
 * The loop's thread only. hiredis formats and parses; bytes travel by net/stream.
 */
#ifndef NET_REDIS_REDIS_H
#define NET_REDIS_REDIS_H

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

enum {
    REDIS_HOST_MAX = 256,
    REDIS_PATH_MAX = 108, /* of a Unix socket */
    REDIS_FILE_MAX = 512, /* a file's name */
    REDIS_SECRET_MAX = 512,
    REDIS_ID_MAX = 64,
    REDIS_SERVICE_MAX = 128,
    REDIS_SENTINELS_MAX = 9,
    REDIS_SERVERS_MAX = 9,
    REDIS_WORDS_MAX = 128 /* of a script's keys and arguments */
};

/* ---- Addresses ------------------------------------------------------------------------------- */

/* How a server proves who it is, and we to it. */
struct redis_tls {
    char ca[REDIS_FILE_MAX]; /* ""; those that the system trusts */
    char certificate[REDIS_FILE_MAX];
    char key[REDIS_FILE_MAX];
    char name[REDIS_HOST_MAX]; /* asked for and demanded; "": the host's */
    bool is_unverified;
};

struct redis_host {
    char host[REDIS_HOST_MAX];
    int port;
};

struct redis_address {
    char host[REDIS_HOST_MAX]; /* "": the Sentinels know */
    int port;
    char path[REDIS_PATH_MAX]; /* of a Unix socket, in place of host and port; "": none */
    int database;
    char user[REDIS_SECRET_MAX];     /* "": the default user */
    char password[REDIS_SECRET_MAX]; /* "": none */
    bool is_tls;
    struct redis_tls tls;
    struct redis_host sentinels[REDIS_SENTINELS_MAX];
    int sentinel_count;              /* 0: the server is known */
    char service[REDIS_SERVICE_MAX]; /* as the Sentinels call it */
    char sentinel_user[REDIS_SECRET_MAX];
    char sentinel_password[REDIS_SECRET_MAX];
    struct redis_host
        servers[REDIS_SERVERS_MAX]; /* of several, independent ones; .host is the first */
    int server_count;               /* 0: there is but one */
    bool wants_majority;
};

/* redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE][?…], under TLS rediss://…, or a Unix socket as
 * unix://[[USER]:PASSWORD@]/PATH[?db=DATABASE] (redis+unix:// is the same), several servers as
 * redis://HOST[:PORT],HOST[:PORT],…?quorum=majority, or whatever Sentinels
 * say: redis+sentinel://[[USER]:PASSWORD@]HOST[:PORT][,…]/SERVICE[/DATABASE]. BATON_EINVAL,
 * BATON_ETOOBIG: the message has the part that is wrong, and never the password. */
int redis_address_parse(struct redis_address *ret, const char *url, struct baton_error *reterr);
/* What the query may say, from elsewhere: `db`; `quorum` (majority); for rediss:// `ca`, `cert`,
 * `key` (files), `sni` and `verify` (on, off); for Sentinels `sentinel-user` and
 * `sentinel-password`. Other keys are none of ours, and fine. */
int redis_address_set(struct redis_address *address, const char *key, const char *value,
                      struct baton_error *reterr);
/* What only the whole can show, when all of it is set: BATON_EINVAL. */
int redis_address_check(const struct redis_address *address, struct baton_error *reterr);
/* The address of its first Sentinel, with their user and password. */
void redis_address_of_sentinel(const struct redis_address *address, struct redis_address *ret);
/* "HOST:PORT", the socket's path or 'service "NAME"', for people. */
void redis_address_name(const struct redis_address *address, char *ret, size_t ret_bytes);

/* ---- The connection -------------------------------------------------------------------------- */

struct redis; /* opaque */

/* Whom one talks to, as of the latest greeting. */
struct redis_identity {
    char run_id[REDIS_ID_MAX];  /* of the server's process */
    char history[REDIS_ID_MAX]; /* of its data: another one after a start or a promotion */
    char version[REDIS_ID_MAX];
    bool is_master;
    bool is_cluster;   /* a node of a Redis Cluster */
    bool was_promoted; /* it was a replica before it was a master */
    span uptime;
};

/* Text, and the SHA-1 of it once it was loaded. The caller's memory. */
struct redis_script {
    const char *text;
    char sha[48];
};

struct redis_callbacks {
    void (*on_up)(void *userdata, const struct redis_identity *identity);
    /* It was up, or a try has failed. It is being tried again. BATON_ECANCELED: redis_move(). */
    void (*on_down)(void *userdata, const struct baton_error *error);
    /* A subscriber's connection. Borrowed during the call. */
    void (*on_message)(void *userdata, const char *channel, const void *data, size_t bytes);
};

struct redis_options {
    uv_loop_t *loop;
    struct logger *logger;               /* or NULL */
    const struct redis_address *address; /* copied */
    const char *name;                    /* for CLIENT SETNAME; or NULL */
    span answer_timeout;
    /* How often a connection that is up asks whom it talks to (redis_identity_of() is as fresh as
     * that), or, a subscriber's that hears nothing, whether anybody is there. 0: never. */
    span look_interval;
    bool wants_master;            /* a replica will not do: it is tried again */
    struct redis_script *scripts; /* loaded at each greeting; outlive the connection */
    size_t script_count;
    struct redis_callbacks callbacks;
    void *userdata;
};

/* BATON_EINVAL: a file of TLS's is not there or not right; BATON_ENOMEM. */
int redis_open(struct redis **ret, const struct redis_options *options, struct baton_error *reterr);
/* Commands under way are answered with NULL first. */
void redis_close(struct redis *redis, void (*closed)(void *userdata), void *userdata);
/* Its server is this one from now on; an address without a host waits for that. at_once: the next
 * try is now, not when it was to be. Where it is already: nothing. */
void redis_move(struct redis *redis, const char *host, int port, bool at_once);
/* Which server it is, or tries to reach. */
void redis_where(const struct redis *redis, struct redis_host *ret);
bool redis_is_up(const struct redis *redis);
/* As of the latest look. Its memory. */
const struct redis_identity *redis_identity_of(const struct redis *redis);
/* "HOST:PORT" in numbers of the server it is connected to; "" if to none. Its memory. */
const char *redis_peer_address(const struct redis *redis);
/* AUTH and SELECT as bytes for somebody else's connection; free() them, they hold the password.
 * NULL and 0 bytes: there is nothing to say. BATON_ENOMEM. */
int redis_greeting(const struct redis_address *address, char **ret, size_t *ret_bytes);

/* reply NULL: no answer came, and whether the command was carried out is not known. Borrowed during
 * the call. sent: when the command was handed over, by base/clock.h. */
typedef void (*redis_reply_cb)(void *userdata, uint64_t tag, const redisReply *reply, instant sent);

/* BATON_EUNAVAILABLE: it is not up; BATON_EBUSY: too much is under way; BATON_ENOMEM. */
int redis_command(struct redis *redis, int count, const char **words, const size_t *lengths,
                  redis_reply_cb on_reply, void *userdata, uint64_t tag);
/* What is to be sent leaves now, as far as the socket takes it; else it does when the loop's turn
 * ends. */
void redis_flush(struct redis *redis);
/* EVALSHA with keys first, then arguments. A server that has forgotten the script answers NOSCRIPT,
 * and is given it again for the next time. */
int redis_run(struct redis *redis, const struct redis_script *script, int key_count, int count,
              const char **words, const size_t *lengths, redis_reply_cb on_reply, void *userdata,
              uint64_t tag);

/* A subscriber's connection: holds across reconnects. BATON_ENOMEM. */
int redis_subscribe(struct redis *redis, const char *channel);
void redis_unsubscribe(struct redis *redis, const char *channel);

/* ---- Replies --------------------------------------------------------------------------------- */

/* X(symbol, first word, what it means and what to do) */
#define REDIS_FAULTS(X)                                                                            \
    X(REDIS_READONLY, "READONLY", "the server is a replica: connect to its master")                \
    X(REDIS_LOADING, "LOADING", "the server is loading its data: it is asked again")               \
    X(REDIS_MASTERDOWN, "MASTERDOWN", "a replica has lost its master")                             \
    X(REDIS_OOM, "OOM", "the server is out of memory: raise maxmemory or free some")               \
    X(REDIS_MISCONF, "MISCONF",                                                                    \
      "the server cannot save to its disk and refuses writes: see its log")                        \
    X(REDIS_NOPERM, "NOPERM", "the user may not do this: see docs/redis.md for the ACL rule")      \
    X(REDIS_BUSY, "BUSY", "a script has blocked the server for long")                              \
    X(REDIS_NOAUTH, "NOAUTH", "the server wants a password: redis://:PASSWORD@HOST")               \
    X(REDIS_WRONGPASS, "WRONGPASS", "user or password is wrong, or the user is disabled")          \
    X(REDIS_WRONGTYPE, "WRONGTYPE", "a key of this name holds another type of value")              \
    X(REDIS_NOSCRIPT, "NOSCRIPT", "the server forgot a script: it is loaded again")                \
    X(REDIS_MOVED, "MOVED", "the key belongs to another node of a Redis Cluster")                  \
    X(REDIS_ASK, "ASK", "the key is on its way to another node of a Redis Cluster")                \
    X(REDIS_TRYAGAIN, "TRYAGAIN", "keys are on their way to another node of a Redis Cluster")      \
    X(REDIS_CROSSSLOT, "CROSSSLOT",                                                                \
      "in a Redis Cluster an election's name, and state-prefix, need a {tag}: \"{billing}\"")      \
    X(REDIS_CLUSTERDOWN, "CLUSTERDOWN", "the Redis Cluster cannot serve this key")                 \
    X(REDIS_NOREPLICAS, "NOREPLICAS", "not enough replicas for min-replicas-to-write")

enum redis_fault {
    REDIS_FINE,
    REDIS_OTHER, /* an error that is none of these */
#define REDIS_FAULT_ENUM(symbol, word, text) symbol,
    REDIS_FAULTS(REDIS_FAULT_ENUM)
#undef REDIS_FAULT_ENUM
};

/* What an answer says has gone wrong. NULL: REDIS_OTHER. */
enum redis_fault redis_fault_of(const redisReply *reply);
/* The same as an error, with what to do. Returns its code. */
int redis_fault_error(const redisReply *reply, struct baton_error *reterr);
/* What a subscriber hears; borrowed from the answer. False: it is no message. */
bool redis_parse_message(const redisReply *reply, const char **ret_channel, const char **ret_data,
                         size_t *ret_bytes);
/* Whether a server may name another one so: graphic characters of ASCII, not too many. */
bool redis_is_host(const char *text, size_t bytes);
/* Bytes of others as a text that may be shown: control characters, and what is no UTF-8, come out
 * as '?', and it is cut between two characters. Whether it came out as it was. */
bool redis_clean_text(char *ret, size_t ret_bytes, const char *bytes, size_t count);
/* The text of INFO as an identity; what it does not say is empty. */
void redis_identity_parse(struct redis_identity *ret, const char *info, size_t bytes);

#endif

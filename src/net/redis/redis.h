/* A connection to one Redis or Valkey server that reconnects by itself, on a libuv loop.
 *
 *   redis_open ─▶ connects, greets (AUTH, SELECT, INFO, scripts) ─▶ on_up ─▶ commands …
 *                     ▲                                                        │
 *                     └── waits: growing, randomised delays ◀── on_down ───────┘
 *
 * Commands are pipelined: the commands of one turn of the loop are one write, and replies come in
 * their order. A command without a reply in time takes the connection down, because later replies
 * could not be attributed. A subscriber's connection (on_message is set) accepts subscriptions
 * instead of commands, and renews them after each greeting.
 *
 * Only on the loop's thread. hiredis formats and parses; net/stream transports the bytes.
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
    REDIS_FILE_MAX = 512, /* of a file's path */
    REDIS_SECRET_MAX = 512,
    REDIS_ID_MAX = 64,
    REDIS_SERVICE_MAX = 128,
    REDIS_SENTINELS_MAX = 9,
    REDIS_SERVERS_MAX = 9,
    REDIS_ARGUMENTS_MAX = 128 /* keys and arguments of a script */
};

/* ---- Addresses ------------------------------------------------------------------------------- */

/* How the server and we authenticate. */
struct redis_tls {
    char ca[REDIS_FILE_MAX]; /* "": the CAs that the system trusts */
    char certificate[REDIS_FILE_MAX];
    char key[REDIS_FILE_MAX];
    char name[REDIS_HOST_MAX]; /* sent as SNI and required in the certificate; "": the host */
    bool is_unverified;
};

struct redis_host {
    char host[REDIS_HOST_MAX];
    int port;
};

struct redis_address {
    char host[REDIS_HOST_MAX]; /* "": from the Sentinels */
    int port;
    char path[REDIS_PATH_MAX]; /* of a Unix socket, instead of host and port; "": none */
    int database;
    char user[REDIS_SECRET_MAX];     /* "": the default user */
    char password[REDIS_SECRET_MAX]; /* "": none */
    bool is_tls;
    struct redis_tls tls;
    struct redis_host sentinels[REDIS_SENTINELS_MAX];
    int sentinel_count;              /* 0: no Sentinels */
    char service[REDIS_SERVICE_MAX]; /* the service's name in the Sentinels */
    char sentinel_user[REDIS_SECRET_MAX];
    char sentinel_password[REDIS_SECRET_MAX];
    struct redis_host servers[REDIS_SERVERS_MAX]; /* independent servers; .host is the first */
    int server_count;                             /* 0: only .host */
    bool wants_majority;
};

/* Parses
 *
 *   redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE][?…]       rediss:// with TLS
 *   redis://HOST[:PORT],HOST[:PORT],…?quorum=majority          several servers
 *   unix://[[USER]:PASSWORD@]/PATH[?db=DATABASE]               or redis+unix://
 *   redis+sentinel://[[USER]:PASSWORD@]HOST[:PORT][,…]/SERVICE[/DATABASE]
 *
 * BATON_EINVAL, BATON_ETOOBIG: the message quotes the wrong part, and never the password. */
int redis_address_parse(struct redis_address *ret, const char *url, struct baton_error *reterr);
/* Sets what the URL's query can set: `db`; `quorum` (majority); for rediss:// `ca`, `cert`, `key`
 * (files), `sni` and `verify` (on, off); for Sentinels `sentinel-user` and `sentinel-password`.
 * Other keys are ignored. */
int redis_address_set(struct redis_address *address, const char *key, const char *value,
                      struct baton_error *reterr);
/* Checks combinations, after all is set: BATON_EINVAL. */
int redis_address_check(const struct redis_address *address, struct baton_error *reterr);
/* The address of the first Sentinel, with the Sentinels' user and password. */
void redis_address_of_sentinel(const struct redis_address *address, struct redis_address *ret);
/* "HOST:PORT", the socket's path or 'service "NAME"', for people. */
void redis_address_name(const struct redis_address *address, char *ret, size_t ret_bytes);

/* ---- The connection -------------------------------------------------------------------------- */

struct redis; /* opaque */

/* The identity of the server, as of the latest greeting or check. */
struct redis_identity {
    char run_id[REDIS_ID_MAX];  /* identifies the server's process */
    char history[REDIS_ID_MAX]; /* identifies its data: changes with a start or a promotion */
    char version[REDIS_ID_MAX];
    bool is_master;
    bool is_cluster;   /* a node of a Redis Cluster */
    bool was_promoted; /* the server became a master after it was a replica */
    span uptime;
};

/* A script's text, and its SHA-1 once it was loaded. In the caller's memory. */
struct redis_script {
    const char *text;
    char sha[48];
};

struct redis_callbacks {
    void (*on_up)(void *userdata, const struct redis_identity *identity);
    /* The connection ended, or an attempt failed; another attempt follows. BATON_ECANCELED: by
     * redis_move(). */
    void (*on_down)(void *userdata, const struct baton_error *error);
    /* Set for a subscriber's connection. Arguments are borrowed during the call. */
    void (*on_message)(void *userdata, const char *channel, const void *data, size_t bytes);
};

struct redis_options {
    uv_loop_t *loop;
    struct logger *logger;               /* or NULL */
    const struct redis_address *address; /* copied */
    const char *name;                    /* for CLIENT SETNAME; or NULL */
    span answer_timeout;
    /* The interval of checks while the connection is up: of the server's identity (which
     * redis_identity_of() returns), or, for a subscriber that receives nothing, of whether the
     * server still answers. 0: never. */
    span look_interval;
    bool wants_master;            /* reconnect if the server is a replica */
    struct redis_script *scripts; /* loaded in each greeting; outlive the connection */
    size_t script_count;
    struct redis_callbacks callbacks;
    void *userdata;
};

/* BATON_EINVAL: a TLS file is missing or invalid; BATON_ENOMEM. */
int redis_open(struct redis **ret, const struct redis_options *options, struct baton_error *reterr);
/* Answers the commands under way with NULL, then closes. */
void redis_close(struct redis *redis, void (*closed)(void *userdata), void *userdata);
/* Changes the server; a connection whose address has no host waits for this. at_once: does not wait
 * for the next planned attempt. Does nothing if the server is the same. */
void redis_move(struct redis *redis, const char *host, int port, bool at_once);
/* Checks the TLS files of an address: BATON_EINVAL, BATON_EAUTH name the file. */
int redis_check_files(const struct redis_address *address, struct baton_error *reterr);
/* Takes the password and the TLS files of `from`, for the next connection; the present one stays.
 * A connection that waits to try again does so at once if the password is another one. Errors as
 * redis_check_files(); nothing has changed then. */
int redis_renew(struct redis *redis, const struct redis_address *from, struct baton_error *reterr);
/* The server that it is connected or connecting to. */
void redis_where(const struct redis *redis, struct redis_host *ret);
bool redis_is_up(const struct redis *redis);
/* As of the latest check. Borrowed from the connection. */
const struct redis_identity *redis_identity_of(const struct redis *redis);
/* The numeric "HOST:PORT" of the connected server; "": none. Borrowed from the connection. */
const char *redis_peer_address(const struct redis *redis);
/* AUTH and SELECT as bytes, for a connection of another kind. The caller frees them; they contain
 * the password. NULL and 0 bytes: none needed. BATON_ENOMEM. */
int redis_greeting(const struct redis_address *address, char **ret, size_t *ret_bytes);

/* reply NULL: no reply came, and the command may or may not have been executed. Borrowed during the
 * call. sent: when the command was passed to redis_command(). */
typedef void (*redis_reply_cb)(void *userdata, uint64_t tag, const redisReply *reply, instant sent);

/* BATON_EUNAVAILABLE: not connected; BATON_EBUSY: too much is under way; BATON_ENOMEM. */
int redis_command(struct redis *redis, int count, const char **arguments, const size_t *lengths,
                  redis_reply_cb on_reply, void *userdata, uint64_t tag);
/* Writes waiting commands now, as far as the socket accepts them, rather than at the end of the
 * loop's turn. */
void redis_flush(struct redis *redis);
/* EVALSHA: keys first, then arguments. A server without the script replies NOSCRIPT, and the script
 * is loaded again for the next call. */
int redis_run(struct redis *redis, const struct redis_script *script, int key_count, int count,
              const char **arguments, const size_t *lengths, redis_reply_cb on_reply,
              void *userdata, uint64_t tag);

/* For a subscriber's connection; lasts across reconnects. BATON_ENOMEM. */
int redis_subscribe(struct redis *redis, const char *channel);
void redis_unsubscribe(struct redis *redis, const char *channel);

/* ---- Replies --------------------------------------------------------------------------------- */

/* X(symbol, the reply's first word, meaning and remedy) */
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
    REDIS_OTHER, /* any other error */
#define REDIS_FAULT_ENUM(symbol, word, text) symbol,
    REDIS_FAULTS(REDIS_FAULT_ENUM)
#undef REDIS_FAULT_ENUM
};

/* The kind of an error reply. NULL: REDIS_OTHER. */
enum redis_fault redis_fault_of(const redisReply *reply);
/* Fills in an error from an error reply, with the remedy. Returns its code. */
int redis_fault_error(const redisReply *reply, struct baton_error *reterr);
/* Parses a published message; borrowed from the reply. False: not a message. */
bool redis_parse_message(const redisReply *reply, const char **ret_channel, const char **ret_data,
                         size_t *ret_bytes);
/* Whether the text is a possible host: graphic ASCII characters, within the length limit. */
bool redis_is_host(const char *text, size_t bytes);
/* Parses the text of INFO; missing fields are empty. */
void redis_identity_parse(struct redis_identity *ret, const char *info, size_t bytes);

#endif

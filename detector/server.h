/* The worker's WebSocket and HTTP server, both on one port: src/web with the worker's rules.
 *
 * A WebSocket connection is a number: its messages arrive whole, and what is sent to it waits in a
 * bounded queue of its own until the peer reads. HTTP answers GET and HEAD. With a token, both must
 * show it (Authorization: Bearer …), except /healthz and /readyz. A page in a browser cannot drive
 * the worker: an upgrade with an Origin is refused. Nor can one see anything that was rebound to
 * our address: without a token, HTTP answers only who asks for a host that could not be foreign.
 * Nobody can hold a place for ever: silent peers are pinged and cut off, headers have a time limit,
 * connections a number.
 *
 * One thread: the loop's. Hooks are called on it and may call server_send and server_drop, but
 * not close the server.
 */
#ifndef DETECTOR_SERVER_H
#define DETECTOR_SERVER_H

#include "base/buffer.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum {
    SERVER_CONNECTIONS_MAX = 2048,
    SERVER_BACKLOG_MAX = 4 << 20,  /* bytes that wait for one WebSocket peer to read */
    SERVER_ANSWERS_MAX = 64 << 20, /* bytes of HTTP answers that wait, all together; then 503 */
    SERVER_BODY_MAX = 32 << 20,    /* bytes of one HTTP answer */
    SERVER_PATH_MAX = 1024,        /* bytes of a decoded path */
    SERVER_TOKEN_MAX = 256,
};

struct http_question {
    const char *path;  /* decoded, always begins with a slash */
    const char *query; /* "crop=1&…", or "" */
    const char *etag;  /* If-None-Match, or "" */
    uint64_t ticket;   /* names this question in what follows it; never used again */
};

/* How an answer comes: at once; once server_answer() is called, within 30 s, after which the peer
 * gets 503; or its head at once, and then parts for as long as the peer reads them: see `wanted`.
 */
enum reply_kind { REPLY_NOW, REPLY_LATER, REPLY_PARTS };

struct http_reply {
    enum reply_kind kind;
    unsigned status;
    unsigned retry_after_s; /* 0: not said */
    const char *type;       /* of the content; static */
    char etag[96];          /* quoted, or "": none, and then the answer is not to be stored */
    struct buffer body;     /* an empty one of SERVER_BODY_MAX */
};

struct server_hooks {
    void (*connected)(void *userdata, uint64_t peer);
    /* A connection is closed at once, because SERVER_CONNECTIONS_MAX are open. */
    void (*refused)(void *userdata);
    void (*disconnected)(void *userdata, uint64_t peer);
    void (*received)(void *userdata, uint64_t peer, const char *bytes, size_t count);
    /* What came is not handed out, and why; but for a binary message the peer is closed, too. */
    void (*spoiled)(void *userdata, uint64_t peer, const char *reason);
    void (*drained)(void *userdata, uint64_t peer); /* all that waited for it was written */
    /* A message that was sent to it with a receipt has arrived: its system has it; in the order of
     * sending. */
    void (*delivered)(void *userdata, uint64_t peer);
    void (*asked)(void *userdata, const struct http_question *question, struct http_reply *reply);
    /* REPLY_PARTS: all was read that was sent, the next part may be given. */
    void (*wanted)(void *userdata, uint64_t ticket);
    /* REPLY_PARTS: the peer has gone. */
    void (*left)(void *userdata, uint64_t ticket);
    void *userdata;
};

struct server_config {
    uv_loop_t *loop;
    const char *host;  /* NULL: every address of this machine */
    int port;          /* 0: the kernel chooses */
    const char *token; /* NULL: none */
    const char *const
        *hosts;           /* further names that HTTP may ask for; NULL-ended and stay, or NULL */
    const char *tls_cert; /* PEM files: wss and https; both NULL: ws and http */
    const char *tls_key;
    size_t message_max;    /* bytes of a WebSocket message */
    unsigned ping_after_s; /* since a WebSocket peer's latest pong; 0: 20 */
    struct server_hooks hooks;
};

struct server; /* opaque */

/* Texts are copied. BATON_EIO: cannot listen there; BATON_EINVAL: certificate or key is none. */
int server_open(struct server **ret, const struct server_config *config,
                struct baton_error *reterr);
int server_port(const struct server *server);
unsigned server_connections(const struct server *server);
uint64_t server_refused(const struct server *server); /* so far, above SERVER_CONNECTIONS_MAX */

/* Queues a message. False: no such peer, it is being closed, or its backlog is full.
 * `with_receipt`: hooks.delivered tells when it has arrived; and false as well while the peer's
 * socket is full. */
bool server_send(struct server *server, uint64_t peer, const char *text, size_t bytes,
                 bool with_receipt);

/* Closes with a WebSocket code and reason (at most 123 bytes). What waits is written before that,
 * as far as the peer takes it within five seconds. */
void server_drop(struct server *server, uint64_t peer, int code, const char *reason);

/* The same with every peer, and whoever comes from now on. */
void server_end(struct server *server, int code, const char *reason);

/* The answer of REPLY_LATER to fill in, or an empty body for the next part of REPLY_PARTS; NULL:
 * the peer has gone, has its answer, or has not read the last part. Borrowed until server_answer().
 */
struct http_reply *server_reply(struct server *server, uint64_t ticket);
void server_answer(struct server *server, uint64_t ticket);

/* Of REPLY_PARTS: no further part comes. */
void server_finish(struct server *server, uint64_t ticket);

/* Close, then run the loop until it is done, then free. NULL is allowed. */
void server_close(struct server *server);
void server_free(struct server *server);

#endif

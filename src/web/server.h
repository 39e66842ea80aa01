/* An HTTP/1.1 server on a libuv loop, over net/stream, in the clear or under TLS.
 *
 * A connection carries one request at a time; those that a client sends ahead wait. An exchange is
 * a request and its answer:
 *
 *   on_request ──web_answer────────────────────────────▶ over
 *        └───────web_begin ──▶ web_part … web_finish ──▶ over
 *                                  └── on_gone: the client has left, or the answer took too long
 *
 * Limits keep each client from costing the others: on connections (the oldest that has yet to send
 * a request makes room), on the bytes of a head and of a body, on the time for a head and for
 * reading an answer. A refused client gets the status, a reason in JSON, and time to read both.
 *
 * The loop's thread only. Callbacks may use the exchange, and may not free the server.
 */
#ifndef WEB_SERVER_H
#define WEB_SERVER_H

#include "base/error.h"
#include "web/request.h"

#include <uv.h>

struct logger;
struct web_server;   /* opaque */
struct web_exchange; /* opaque; ends with its answer's last byte, or before on_gone returns */

struct web_callbacks {
    /* Answer now, or later; the request is the exchange's. */
    void (*on_request)(void *userdata, struct web_exchange *exchange);
    /* How many bytes of a body the request may have, at most body_max, when its head is here and
     * its body is not. NULL: body_max. */
    size_t (*body_limit)(void *userdata, const struct web_request *request);
    /* After web_begin or web_part: the client's system has taken all. Never called from within
     * them. NULL: not needed. */
    void (*on_drain)(void *userdata, struct web_exchange *exchange);
    /* The client left before the answer was complete, or answer_within_s is over: the exchange is
     * not answered any more. NULL: not needed. */
    void (*on_gone)(void *userdata, struct web_exchange *exchange);
};

struct web_config {
    uv_loop_t *loop;
    struct logger *logger; /* or NULL */
    const char *host;      /* an IPv4 or IPv6 address or "localhost"; NULL: every address */
    int port;              /* 0: the kernel chooses */
    const char *tls_cert;  /* PEM, with its chain; both NULL: in the clear */
    const char *tls_key;
    unsigned connections_max;
    unsigned head_within_s;   /* since the connection, or since the latest answer */
    unsigned answer_within_s; /* until web_answer() or web_begin(); else 503, which
                                 needs on_gone. 0: no limit */
    unsigned read_within_s;   /* a client that takes nothing for so long is cut off */
    size_t head_max;          /* bytes, at most WEB_HEAD_MAX */
    size_t body_max;          /* bytes of a request's body; 0: only GET and HEAD, without a body */
    size_t bodies_max;        /* bytes of all bodies that are here; a large one beyond it gets 503.
                                 0: no limit */
    size_t answer_max;        /* bytes that may wait for one client */
    struct web_callbacks callbacks;
    void *userdata;
};

struct web_answer {
    unsigned status;
    const char *type;    /* of the content; NULL: none, and no length is sent */
    const char *headers; /* further ones, each a line that ends with \r\n; or NULL */
    const void *body;
    size_t bytes;
};

/* Texts are borrowed for the call. BATON_EIO: it cannot listen there; BATON_EINVAL: the certificate
 * or the key cannot be used; BATON_ENOMEM. */
int web_server_open(struct web_server **ret, const struct web_config *config,
                    struct baton_error *reterr);
int web_server_port(const struct web_server *server);
/* Connections that are open, or not closed yet. */
unsigned web_server_connections(const struct web_server *server);
/* Bytes that wait for the clients to take them. */
size_t web_server_backlog(const struct web_server *server);

/* Close, then run the loop until it is done, then free. NULL is allowed. No callback follows but
 * on_gone. */
void web_server_close(struct web_server *server);
void web_server_free(struct web_server *server);

const struct web_request *web_exchange_request(const struct web_exchange *exchange);
/* The client's "ADDRESS:PORT" or "[ADDRESS]:PORT", as long as the exchange. */
const char *web_exchange_address(const struct web_exchange *exchange);
/* Bytes of the answer that the client's system has not taken yet. */
size_t web_exchange_backlog(const struct web_exchange *exchange);
void web_exchange_set(struct web_exchange *exchange, void *userdata);
void *web_exchange_get(const struct web_exchange *exchange);

void web_answer(struct web_exchange *exchange, const struct web_answer *answer);
/* {"error": reason}; the reason needs no escapes. The connection ends after 400, and
 * where it is not known where the next request begins. */
void web_refuse(struct web_exchange *exchange, unsigned status, const char *reason);

/* An answer in parts, whose length is not known; body and bytes of `answer` are not used. To a HEAD
 * it is the whole answer. */
void web_begin(struct web_exchange *exchange, const struct web_answer *answer);
void web_part(struct web_exchange *exchange, const void *data, size_t bytes);
void web_finish(struct web_exchange *exchange);

/* Whether an Authorization header shows the token as a bearer, in a time that tells nothing. */
bool web_shows_token(const struct web_request *request, const char *token);

#endif

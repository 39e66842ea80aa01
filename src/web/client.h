/* A client of HTTP/1.1 on a libuv loop, over net/stream, in the clear or under TLS: one request and
 * its response, or the WebSocket that it opens, on a connection of its own.
 *
 *   web_client_open ──▶ on_response ──────────────────────────────────────▶ on_close
 *         ├───────────▶ on_open ──▶ the callbacks of web_socket_options ──▶ on_close
 *         └── a failure ──────────────────────────────────────────────────▶ on_close
 *
 * The server is not trusted: head, body and time have limits, a response must say where it ends
 * (response.h), and a WebSocket begins only with the answer to our key. No redirect is followed, no
 * proxy is asked, nothing is decompressed.
 *
 * The loop's thread only. Callbacks may close the client.
 */
#ifndef WEB_CLIENT_H
#define WEB_CLIENT_H

#include "net/tls.h"
#include "web/response.h"
#include "web/socket.h"

#include <uv.h>

struct web_client; /* opaque; ends when on_close returns */

struct web_client_callbacks {
    /* The response is whole; borrowed during the call. Of a WebSocket: the server refuses it. */
    void (*on_response)(void *userdata, const struct web_response *response);
    /* Bytes of a response with status 200, as they come; on_response then has the rest, or none.
     * The time limit is then for the head, and for each further part. NULL: the body comes whole.
     */
    void (*on_part)(void *userdata, const void *data, size_t bytes);
    /* The WebSocket is open; it lives until the on_close of its options has returned. NULL: only
     * requests. */
    void (*on_open)(void *userdata, struct web_socket *socket);
    /* Once, and always last. error->code: 0 after a response, or after a WebSocket that both sides
     * closed; BATON_EUNAVAILABLE: no connection; BATON_ETIMEDOUT; BATON_EAUTH: TLS; BATON_ECLOSED:
     * it ended too soon; BATON_EPROTO, BATON_ETOOBIG: what came cannot be used; BATON_ECANCELED:
     * web_client_close(). The message names the URL, without its query. */
    void (*on_close)(void *userdata, const struct baton_error *error);
};

/* Borrowed for the call, but for `tls`. */
struct web_client_options {
    uv_loop_t *loop;
    const char *url;       /* http, https; with `socket`, ws or wss */
    const struct tls *tls; /* of https and wss; outlives the client */
    const char *method;    /* NULL: GET */
    const char *headers;   /* further ones, each a line that ends with \r\n; or NULL */
    const void *body;      /* NULL: none */
    size_t bytes;
    size_t head_max; /* bytes of the response's head, at most WEB_HEAD_MAX */
    size_t body_max;
    bool wants_head_only; /* on_response comes with the head; the body, of any form, is not read */
    /* Until the response is whole, or the WebSocket open; without the look-up of a name, whose time
     * the resolver limits, unless `limits_lookup`. */
    uint64_t within_ms;
    bool limits_lookup;
    const struct web_socket_options *socket; /* NULL: a request */
    struct web_client_callbacks callbacks;
    void *userdata;
};

/* BATON_EINVAL: the URL cannot be used; BATON_ENOMEM. All else comes by on_close. */
int web_client_open(struct web_client **ret, const struct web_client_options *options,
                    struct baton_error *reterr);
/* At once, without a closing handshake. */
void web_client_close(struct web_client *client);

#endif

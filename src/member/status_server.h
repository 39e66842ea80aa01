/* A node's HTTP server for its status, on web/server.h: it answers GET and HEAD, so that a request
 * changes nothing.
 *
 * A request must name a host that is allowed (the address, loopback names, and those of the
 * configuration): a page in a browser that was rebound to this address is refused, and so is a
 * foreign Origin. With a token, every request but /healthz must show it. Refusals are JSON:
 * {"error": reason}.
 */
#ifndef MEMBER_STATUS_SERVER_H
#define MEMBER_STATUS_SERVER_H

#include "base/buffer.h"
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <uv.h>

enum { HTTP_CLIENTS_MAX = 512, HTTP_BODY_MAX = 4 * 1024 * 1024, HTTP_TOKEN_MAX = 256 };

struct http_answer {
    unsigned status;    /* 404 unless it is set */
    const char *type;   /* of the content; static */
    struct buffer body; /* of at most HTTP_BODY_MAX bytes */
};

/* Steals the JSON; NULL: out of memory. */
void http_answer_json(struct http_answer *answer, unsigned status, json_t *json);

/* Fills the answer to a GET of `path`, on the loop's thread. */
typedef void (*http_request_cb)(void *userdata, const char *path, struct http_answer *answer);

struct http_config {
    uv_loop_t *loop;
    struct logger *logger; /* or NULL */
    const char *host;      /* an address of this machine */
    int port;              /* 0: the kernel chooses */
    const char *token;     /* NULL: none, which is refused off loopback */
    /* Further names that a request may ask for; NULL-ended, or NULL. Borrowed for its life. */
    const char *const *hosts;
    http_request_cb on_request;
    void *userdata;
};

struct http_server; /* opaque */

/* Host and token are copied. BATON_EAUTH: off loopback without a token; BATON_EIO: cannot listen
 * there. */
int http_server_open(struct http_server **ret, const struct http_config *config,
                     struct baton_error *reterr);
/* Requests show this token from now on, in place of the one before. BATON_ENOMEM: nothing changed.
 */
int http_server_set_token(struct http_server *server, const char *token,
                          struct baton_error *reterr);
int http_server_port(const struct http_server *server);
/* Call on the loop's thread, then run the loop until it is done, then http_server_free. */
void http_server_close(struct http_server *server); /* NULL allowed */
void http_server_free(struct http_server *server);  /* NULL allowed */

#endif

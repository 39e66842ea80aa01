/* A connection to a Unix stream socket by lines of JSON, without a loop: its functions block. One
 * thread.
 */
#ifndef NET_LINE_CLIENT_H
#define NET_LINE_CLIENT_H

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"

#include <jansson.h>

/* Borrowed, beyond the connection's end. */
struct line_server {
    const char *who;  /* "node", for errors */
    const char *hint; /* what to do if nobody listens */
};

struct line_client {
    const struct line_server *server;
    int fd;
    struct buffer input; /* from the beginning of a line on */
};

/* Lines have at most `line_max` bytes; `timeout` bounds the connecting and each sending.
 * BATON_EINVAL: the path is longer than the kernel allows; BATON_EUNAVAILABLE: nobody listens;
 * BATON_EAUTH; BATON_ETIMEDOUT. */
int line_client_open(struct line_client *ret, const struct line_server *server, const char *path,
                     size_t line_max, span timeout, struct baton_error *reterr);
void line_client_close(struct line_client *client);

/* BATON_ECLOSED, BATON_ETIMEDOUT, BATON_ENOMEM. */
int line_client_send(struct line_client *client, const json_t *message, struct baton_error *reterr);
/* The next object, which the caller owns. BATON_ETIMEDOUT, which what has come already cannot meet;
 * BATON_ECLOSED; BATON_EPROTO; BATON_ETOOBIG. */
int line_client_next(struct line_client *client, instant deadline, json_t **ret,
                     struct baton_error *reterr);

#endif

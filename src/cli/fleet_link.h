/* What `baton fleet` asks a process of a fleet, by its HTTP API. Requests wait for their answer on
 * a loop of their own; SIGINT and SIGTERM end the wait. */
#ifndef CLI_FLEET_LINK_H
#define CLI_FLEET_LINK_H

#include "member/status_server.h"
#include "net/tls.h"
#include "options/option.h"

#include <jansson.h>
#include <stdio.h>
#include <uv.h>

enum { FLEET_URL_MAX = 2048 };

struct fleet_link {
    uv_loop_t loop;
    uv_timer_t timer;
    char base[FLEET_URL_MAX]; /* without a slash at its end */
    char headers[HTTP_TOKEN_MAX + 64];
    struct tls *tls; /* NULL: http */
    span timeout;
};

/* BATON_EINVAL: the URL or a file; BATON_EAUTH: other users can read the token. */
int fleet_link_open(struct fleet_link *link, const struct options *options,
                    struct baton_error *reterr);
void fleet_link_close(struct fleet_link *link);

/* One request. `body` NULL: none. *ret (NULL allowed): the answer's JSON, or NULL without one; a
 * new reference. BATON_EAUTH: 401, 403; BATON_ENOENT: 404; BATON_ECONFLICT: another refusal;
 * BATON_EUNAVAILABLE: 5xx, or no connection; BATON_ETIMEDOUT; BATON_ECANCELED: a signal. */
int fleet_ask(struct fleet_link *link, const char *method, const char *path, const json_t *body,
              json_t **ret, struct baton_error *reterr);

/* All items of a list, page after page, as a new array. */
int fleet_list(struct fleet_link *link, const char *path, json_t **ret, struct baton_error *reterr);

struct fleet_stream {
    const char *method, *path;
    const char *headers; /* each a line that ends with \r\n */
    const void *body;    /* NULL: none */
    size_t bytes;
    span silence; /* of the server, after which it is given up */
    /* A line of the answer, without its end. */
    void (*on_line)(void *userdata, const char *line);
    void *userdata;
};

/* A request whose answer is read line by line until it ends. Errors as fleet_ask(). */
int fleet_read_lines(struct fleet_link *link, const struct fleet_stream *stream,
                     struct baton_error *reterr);

/* "/api/displays/", an id that is encoded, and a rest. BATON_EINVAL: too long. */
int fleet_path(char *ret, size_t bytes, const char *before, const char *id, const char *after,
               struct baton_error *reterr);

#endif

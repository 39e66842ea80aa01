/* The status server of a worker: /status, /metrics, /healthz. What the pool's leader knows is there
 * while this process leads; docs/work.md has the fields. */
#ifndef CLI_WORKER_HTTP_H
#define CLI_WORKER_HTTP_H

#include "options/option.h"
#include "pool/pool.h"

struct http_server;

/* *ret is NULL without --http; close and free it as http_server. */
int worker_http_open(struct http_server **ret, struct pool *pool, const struct options *options,
                     struct logger *logger, struct baton_error *reterr);

#endif

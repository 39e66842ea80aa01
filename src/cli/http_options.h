/* The options of a status server: --http, --http-token-file, --http-host. */
#ifndef CLI_HTTP_OPTIONS_H
#define CLI_HTTP_OPTIONS_H

#include "member/status_server.h"
#include "options/option.h"

/* What a struct http_config borrows. */
struct http_options {
    char host[256];
    char token[HTTP_TOKEN_MAX];
};

/* Fills address, token and names of `ret`; `space` outlives its use. `ret->host` is NULL without
 * --http. BATON_EINVAL; BATON_EAUTH: other users can read the token's file. */
int http_options_read(struct http_config *ret, struct http_options *space,
                      const struct options *options, struct baton_error *reterr);

#endif

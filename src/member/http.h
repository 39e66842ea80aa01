/* The status server of a member: /status, /metrics, /leader, /healthz. docs/cli.md describes the
 * answers, status_server.h the access rules and limits.
 */
#ifndef MEMBER_HTTP_H
#define MEMBER_HTTP_H

#include "member/status.h"
#include "member/status_server.h"

/* `config` but for its callback, which is ours. `status` outlives the server, which is closed and
 * freed by http_server_close() and http_server_free(). Errors as http_server_open(). */
int member_http_open(struct http_server **ret, const struct http_config *config,
                     struct status *status, struct baton_error *reterr);

#endif

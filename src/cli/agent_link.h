/* A connection to the agent of this host (docs/agent-protocol.md), without a loop: requests, their
 * replies, and events. One thread. What fails is as net/line_client.h has it; a request fails with
 * what the agent refuses it with, too.
 */
#ifndef CLI_AGENT_LINK_H
#define CLI_AGENT_LINK_H

#include "net/local.h"
#include "options/option.h"

#include <jansson.h>

struct agent_link; /* opaque */

/* The socket of --socket, or else of $BATON_PROVIDER where that is agent:/path, as for the commands
 * that take --provider, or else that of this host. BATON_EINVAL: the variable's path. */
int agent_link_path(char ret[static LOCAL_PATH_MAX], const struct options *options,
                    struct baton_error *reterr);

/* To that socket. `timeout` bounds each request. */
int agent_link_open(struct agent_link **ret, const struct options *options, span timeout,
                    struct baton_error *reterr);
void agent_link_close(struct agent_link *link); /* NULL allowed */

/* Sends `request`, whose reference it takes (NULL: it could not be made, BATON_EINVAL), and waits
 * for the reply, which the caller owns; ret NULL: it is not wanted. Events that come before it wait
 * for agent_link_event(). */
int agent_link_ask(json_t **ret, struct agent_link *link, json_t *request,
                   struct baton_error *reterr);
/* The next event, which the caller owns. BATON_ETIMEDOUT: none came until `limit`. */
int agent_link_event(json_t **ret, struct agent_link *link, instant limit,
                     struct baton_error *reterr);

/* One request within --timeout, on a connection of its own. */
int agent_link_call(json_t **ret, const struct options *options, json_t *request,
                    struct baton_error *reterr);

#endif

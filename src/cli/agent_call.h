/* Asks the agent of this host: one request, one reply, without a loop. */
#ifndef CLI_AGENT_CALL_H
#define CLI_AGENT_CALL_H

#include "options/option.h"

#include <jansson.h>

/* Sends `request` (without its id; the reference is taken) and returns the reply.
 * BATON_EUNAVAILABLE: no agent listens there; BATON_EAUTH: this user may not connect;
 * BATON_ETIMEDOUT; BATON_EPROTO; and what the agent refuses with. */
int agent_call(json_t **ret, const char *path, json_t *request, span timeout,
               struct baton_error *reterr);

#endif

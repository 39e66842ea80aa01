/* Who may ask: the token, the Host and the Origin of a request.
 *
 *   right     no token is set       tokens are set
 *   NONE      anybody               anybody
 *   READ      a Host that is ours   the read token or the change token
 *   CHANGE    a Host that is ours   the change token
 *
 * A page of another site that a browser shows cannot use the API: its requests have an Origin that
 * is not the Host, and without tokens a name that was rebound to our address is not ours. A token
 * that is set for changes alone is needed for reading, too.
 */
#ifndef FLEET_HTTP_GATE_H
#define FLEET_HTTP_GATE_H

#include "fleet/http/routes.h"
#include "web/request.h"

struct gate {
    const char *host;          /* where we listen */
    const char *const *hosts;  /* further names; NULL-ended, or NULL */
    const char *read, *change; /* tokens; NULL: none */
};

/* 0, or the status of the refusal, 401 or 403, with its reason. */
unsigned gate_check(const struct gate *gate, const struct web_request *request, enum right right,
                    const char **ret_reason);

#endif

#include "fleet/http/gate.h"

#include "web/host.h"
#include "web/server.h"

#include <string.h>
#include <strings.h>

/* An address is no name, so nobody can have rebound it. */
static bool is_our_host(const struct gate *gate, const char *host)
{
    char name[WEB_HOST_MAX];

    return web_host_is_ours(gate->host, gate->hosts, host) ||
           (web_host_name(host, name) && web_is_address(name));
}

/* The page's own, or one of a name that the configuration lists, at any port: a proxy's. Another
 * port of this host is another program's, whose page is a stranger. */
static bool is_our_origin(const struct gate *gate, const char *origin, const char *host)
{
    const char *authority = strstr(origin, "://");

    return authority != NULL && (strcasecmp(authority + 3, host) == 0 ||
                                 web_host_is_ours("", gate->hosts, authority + 3));
}

/* A picture or a link in a page of another site: such a request has no Origin. */
static bool is_cross_site(const struct web_request *request)
{
    const char *site = web_header(&request->head, "sec-fetch-site");

    return site != NULL && strcasecmp(site, "cross-site") == 0;
}

static unsigned check_token(const struct gate *gate, const struct web_request *request,
                            enum right right, const char **ret_reason)
{
    bool may_change = gate->change != NULL && web_shows_token(request, gate->change);
    bool may_read = may_change || (gate->read != NULL && web_shows_token(request, gate->read));

    if (!may_read) {
        *ret_reason = "a bearer token is needed: authorization: Bearer TOKEN";
        return 401;
    }
    if (right == RIGHT_CHANGE && !may_change) {
        *ret_reason = gate->change != NULL ? "this token may read; a change needs the other one"
                                           : "no token for changes is set, so nobody may change";
        return 403;
    }
    return 0;
}

unsigned gate_check(const struct gate *gate, const struct web_request *request, enum right right,
                    const char **ret_reason)
{
    const char *host = web_header(&request->head, "host");
    const char *origin = web_header(&request->head, "origin");

    if (right == RIGHT_NONE) {
        return 0;
    }
    host = host != NULL ? host : "";
    if (origin != NULL ? !is_our_origin(gate, origin, host) : is_cross_site(request)) {
        *ret_reason = "a page of another site may not use this API; see --http-host";
        return 403;
    }
    if (gate->read != NULL || gate->change != NULL) {
        return check_token(gate, request, right, ret_reason);
    }
    if (!is_our_host(gate, host)) {
        *ret_reason = "this host name is not known; ask for the address, or see --http-host";
        return 403;
    }
    return 0;
}

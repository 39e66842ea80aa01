/* The kinds of URLs that discovery.h reads; for its files only. */
#ifndef FLEET_WORKERS_DISCOVERY_INT_H
#define FLEET_WORKERS_DISCOVERY_INT_H

#include "fleet/workers/discovery.h"
#include "web/url.h"

enum discovery_kind { DISCOVERY_STATIC, DISCOVERY_ADDRESSES, DISCOVERY_SERVICE };

struct discovery_url {
    enum discovery_kind kind;
    const char *scheme; /* of the workers: "ws", "wss"; static */
    int port;
    char host[WEB_URL_HOST_MAX + 1];
};

int discovery_url_parse(struct discovery_url *ret, const char *text, struct baton_error *reterr);

/* The worker at a host or address; false: that makes no URL, as with port 0, or a long one. */
bool discovery_found(struct discovered *ret, const char *scheme, const char *host, unsigned port);

#endif

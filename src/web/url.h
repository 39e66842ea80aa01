/* The URL that a client opens: http, https, ws or wss. */
#ifndef WEB_URL_H
#define WEB_URL_H

#include "base/error.h"

#include <stdbool.h>

enum { WEB_URL_MAX = 4096, WEB_URL_HOST_MAX = 255 }; /* bytes */

struct web_url {
    bool is_tls;                           /* https, wss */
    bool is_socket;                        /* ws, wss */
    int port;                              /* the scheme's if none is named */
    char host[WEB_URL_HOST_MAX + 1];       /* without brackets */
    char authority[WEB_URL_HOST_MAX + 16]; /* for the Host header */
    char target[WEB_URL_MAX + 2];          /* the path and the query, at least "/" */
    char shown[WEB_URL_HOST_MAX + 64];     /* for messages: without the query; may be cut off */
};

/* BATON_EINVAL: the text is no such URL, or names a user. The message shows the URL, without a
 * password or a query. */
int web_url_parse(struct web_url *ret, const char *text, struct baton_error *reterr);

#endif

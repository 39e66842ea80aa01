/* Which names a request may give a server of ours, in Host or Origin: a page in a browser that was
 * rebound to our address names its own host, not ours. */
#ifndef WEB_HOST_H
#define WEB_HOST_H

#include <stdbool.h>
#include <stddef.h>

enum { WEB_HOST_MAX = 512 }; /* bytes of a name, with its NUL */

/* An IPv4 or IPv6 address: no name, so nothing that could be rebound. */
bool web_is_address(const char *host);

/* The name in "name", "name:port" or "[v6]:port". False: there is none, or it is too long. */
bool web_host_name(const char *text, char ret[static WEB_HOST_MAX]);

/* Whether the name in `text`, "name:port", is `host`, where we listen, or, if that is loopback,
 * another name of it, or one of `hosts`, which ends with NULL, or is NULL. */
bool web_host_is_ours(const char *host, const char *const *hosts, const char *text);

#endif

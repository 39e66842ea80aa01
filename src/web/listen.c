/* Where a server listens: at the address of its configuration, and at no other. */
#include "web/server_int.h"

#include <netinet/in.h>
#include <string.h>

int web_listen(struct listener **ret, const struct listener_options *options, const char *host,
               int port)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    int failed;

    if (host == NULL) {
        failed = listener_open_tcp(ret, options, (const struct sockaddr *)&v6);
        return failed != UV_EAFNOSUPPORT && failed != UV_EADDRNOTAVAIL
                   ? failed
                   : listener_open_tcp(ret, options, (const struct sockaddr *)&v4);
    }
    if (uv_ip4_addr(strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, port, &v4) == 0) {
        return listener_open_tcp(ret, options, (const struct sockaddr *)&v4);
    }
    if (uv_ip6_addr(host, port, &v6) == 0) {
        return listener_open_tcp(ret, options, (const struct sockaddr *)&v6);
    }
    return UV_EINVAL;
}

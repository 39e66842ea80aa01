#include "base/host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <strings.h>

bool host_is_loopback(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;

    if (!host) {
        return false;
    }
    if (inet_pton(AF_INET, host, &v4) == 1) {
        return ntohl(v4.s_addr) >> 24 == 127;
    }
    if (inet_pton(AF_INET6, host, &v6) == 1) {
        return IN6_IS_ADDR_LOOPBACK(&v6);
    }
    return strcasecmp(host, "localhost") == 0;
}

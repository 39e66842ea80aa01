#include "detector/camera/dial.h"

#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

static bool is_allowed_v4(uint32_t address)
{
    bool is_any = address >> 24 == 0;
    bool is_link_local = address >> 16 == 0xa9fe; /* 169.254/16 */
    bool is_multicast = address >> 28 >= 0xe;     /* and what is reserved above */

    return !is_any && !is_link_local && !is_multicast;
}

static bool is_allowed_v6(const struct in6_addr *address)
{
    static const struct in6_addr metadata = {
        .s6_addr = {0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54}};
    uint32_t v4;

    if (IN6_IS_ADDR_V4MAPPED(address)) {
        memcpy(&v4, &address->s6_addr[12], sizeof(v4));
        return is_allowed_v4(ntohl(v4));
    }
    return !IN6_IS_ADDR_UNSPECIFIED(address) && !IN6_IS_ADDR_LINKLOCAL(address) &&
           !IN6_IS_ADDR_MULTICAST(address) && memcmp(address, &metadata, sizeof(metadata)) != 0;
}

bool dial_is_allowed(const struct sockaddr *address, socklen_t bytes)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    if (address->sa_family == AF_INET && bytes >= sizeof(v4)) {
        memcpy(&v4, address, sizeof(v4));
        return is_allowed_v4(ntohl(v4.sin_addr.s_addr));
    }
    if (address->sa_family == AF_INET6 && bytes >= sizeof(v6)) {
        memcpy(&v6, address, sizeof(v6));
        return is_allowed_v6(&v6.sin6_addr);
    }
    return address->sa_family != AF_INET && address->sa_family != AF_INET6;
}

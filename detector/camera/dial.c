#include "detector/camera/dial.h"

#include <stddef.h>
#include <string.h>

bool dial_host(struct in6_addr *ret, const struct sockaddr *address, socklen_t bytes)
{
    if (address->sa_family == AF_INET && bytes >= sizeof(struct sockaddr_in)) {
        *ret = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
        memcpy(&ret->s6_addr[12], (const char *)address + offsetof(struct sockaddr_in, sin_addr),
               sizeof(struct in_addr));
        return true;
    }
    if (address->sa_family == AF_INET6 && bytes >= sizeof(struct sockaddr_in6)) {
        memcpy(ret, (const char *)address + offsetof(struct sockaddr_in6, sin6_addr), sizeof(*ret));
        return true;
    }
    return false;
}

const uint8_t *dial_v4(const struct in6_addr *host)
{
    static const uint8_t translated[12] = {0, 0x64, 0xff, 0x9b}; /* by a gateway, to IPv4 */

    return IN6_IS_ADDR_V4MAPPED(host) || memcmp(host, translated, sizeof(translated)) == 0
               ? &host->s6_addr[12]
               : NULL;
}

bool dial_is_allowed(const struct sockaddr *address, socklen_t bytes)
{
    static const struct in6_addr metadata = {
        .s6_addr = {0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54}};
    struct in6_addr host;
    const uint8_t *v4;

    if (!dial_host(&host, address, bytes)) {
        return false;
    }
    v4 = dial_v4(&host);
    if (v4 != NULL) {
        bool is_any = v4[0] == 0;
        bool is_link_local = v4[0] == 169 && v4[1] == 254;
        bool is_multicast = v4[0] >= 224; /* and the reserved range above */
        return !is_any && !is_link_local && !is_multicast;
    }
    return !IN6_IS_ADDR_UNSPECIFIED(&host) && !IN6_IS_ADDR_LINKLOCAL(&host) &&
           !IN6_IS_ADDR_MULTICAST(&host) && memcmp(&host, &metadata, sizeof(metadata)) != 0;
}

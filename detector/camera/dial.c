#include "detector/camera/dial.h"

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static bool is_allowed_v4(uint32_t address)
{
    bool is_any = address >> 24 == 0;
    bool is_link_local = address >> 16 == 0xa9fe; /* 169.254/16 */
    bool is_multicast = address >> 28 >= 0xe;     /* and the reserved range above */

    return !is_any && !is_link_local && !is_multicast;
}

/* True for ::ffff:0:0/96, and for 64:ff9b::/96, which a gateway translates. */
static bool stands_for_v4(const struct in6_addr *address)
{
    static const uint8_t translated[12] = {0, 0x64, 0xff, 0x9b};

    return IN6_IS_ADDR_V4MAPPED(address) ||
           memcmp(address->s6_addr, translated, sizeof(translated)) == 0;
}

static bool is_allowed_v6(const struct in6_addr *address)
{
    static const struct in6_addr metadata = {
        .s6_addr = {0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54}};
    uint32_t v4;

    if (stands_for_v4(address)) {
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
    return false;
}

enum { DIALLED_MAX = 8 };

static struct in6_addr dialled[DIALLED_MAX]; /* those of IPv4 as ::ffff:a.b.c.d */
static unsigned dialled_count;

/* Returns false for an address that is not of the internet. */
static bool host_of(struct in6_addr *ret, const struct sockaddr *address, socklen_t bytes)
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

void dial_remember(const struct sockaddr *address, socklen_t bytes)
{
    struct in6_addr host;

    if (host_of(&host, address, bytes)) {
        dialled[dialled_count++ % DIALLED_MAX] = host;
    }
}

bool dial_was_dialled(const struct sockaddr *address, socklen_t bytes)
{
    struct in6_addr host;

    if (!host_of(&host, address, bytes)) {
        return false;
    }
    for (unsigned i = 0; i < DIALLED_MAX && i < dialled_count; i++) {
        if (memcmp(&dialled[i], &host, sizeof(host)) == 0) {
            return true;
        }
    }
    return false;
}

bool dial_is_same_host(const struct sockaddr *one, const struct sockaddr *other)
{
    struct in6_addr hosts[2];

    return host_of(&hosts[0], one, sizeof(struct sockaddr_in6)) &&
           host_of(&hosts[1], other, sizeof(struct sockaddr_in6)) &&
           memcmp(&hosts[0], &hosts[1], sizeof(hosts[0])) == 0;
}

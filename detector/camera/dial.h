/* Decides which hosts may be dialled. An address of IPv4 is ::ffff:a.b.c.d here. */
#ifndef DETECTOR_CAMERA_DIAL_H
#define DETECTOR_CAMERA_DIAL_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* False for what is no address of the internet. */
bool dial_host(struct in6_addr *ret, const struct sockaddr *address, socklen_t bytes);
/* The address of IPv4 that the host stands for; NULL: none. */
const uint8_t *dial_v4(const struct in6_addr *host);

/* False for link-local addresses (where clouds keep their secrets), multicast and "any", also if an
 * address of IPv6 stands for one of IPv4, and for all that is no address of the internet. */
bool dial_is_allowed(const struct sockaddr *address, socklen_t bytes);

#endif

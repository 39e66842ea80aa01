/* Which addresses may be dialled. */
#ifndef DETECTOR_CAMERA_DIAL_H
#define DETECTOR_CAMERA_DIAL_H

#include <stdbool.h>
#include <sys/socket.h>

/* False for link-local addresses (where clouds keep their secrets), multicast and "any", also as an
 * address of IPv6 that stands for one of IPv4. Nor is any address allowed that is none of the
 * internet. */
bool dial_is_allowed(const struct sockaddr *address, socklen_t bytes);

/* The hosts that this process has dialled, whatever their ports; the last few of them. */
void dial_remember(const struct sockaddr *address, socklen_t bytes);
bool dial_was_dialled(const struct sockaddr *address, socklen_t bytes);
bool dial_is_same_host(const struct sockaddr *one, const struct sockaddr *other);

#endif

/* Decides which addresses may be dialled. */
#ifndef DETECTOR_CAMERA_DIAL_H
#define DETECTOR_CAMERA_DIAL_H

#include <stdbool.h>
#include <sys/socket.h>

/* False for link-local addresses (where clouds keep their secrets), multicast and "any", also if an
 * address of IPv6 stands for one of IPv4, and for all that is no address of the internet. */
bool dial_is_allowed(const struct sockaddr *address, socklen_t bytes);

/* This process remembers the last few hosts that it has dialled, without their ports. */
void dial_remember(const struct sockaddr *address, socklen_t bytes);
bool dial_was_dialled(const struct sockaddr *address, socklen_t bytes);
bool dial_is_same_host(const struct sockaddr *one, const struct sockaddr *other);

#endif

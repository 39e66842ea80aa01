/* Which addresses may be dialled. */
#ifndef DETECTOR_CAMERA_DIAL_H
#define DETECTOR_CAMERA_DIAL_H

#include <stdbool.h>
#include <sys/socket.h>

/* False for link-local addresses (where clouds keep their secrets), multicast and "any". What is
 * no internet address is none of our business. */
bool dial_is_allowed(const struct sockaddr *address, socklen_t bytes);

#endif

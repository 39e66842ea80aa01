/* Hosts as people write them. */
#ifndef BASE_HOST_H
#define BASE_HOST_H

#include <stdbool.h>

/* Whether it is this machine and nobody else: an address of 127.0.0.0/8, ::1 or "localhost". A name
 * that only looks like one ("127.example.org") is none. NULL is none. */
bool host_is_loopback(const char *host);

#endif

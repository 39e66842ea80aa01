/* Hosts as people write them. */
#ifndef BASE_HOST_H
#define BASE_HOST_H

#include <stdbool.h>

/* Whether the host is certainly this machine: an address of 127.0.0.0/8, ::1 or "localhost". False
 * for NULL, and for a name that only looks like an address ("127.example.org"). */
bool host_is_loopback(const char *host);

#endif

/* What proves to the receiver of a webhook who sent it, and when:
 *
 *   Baton-Timestamp: 1700000000
 *   Baton-Signature: sha256=hex(HMAC-SHA256(secret, "1700000000." body))
 */
#ifndef FLEET_OUTLETS_SIGNATURE_H
#define FLEET_OUTLETS_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SIGNATURE_ROOM = sizeof("sha256=") + 64 };

/* `at_s`: seconds of the epoch. False: out of memory. */
bool signature_of(char ret[static SIGNATURE_ROOM], const char *secret, int64_t at_s,
                  const void *body, size_t bytes);

#endif

/* SHA-256 that cannot fail. EVP_Digest(3) and SHA256(3) take memory, and without it leave the
 * result as it was: an id, a key or the hash of a secret that is anything. */
#ifndef NET_DIGEST_H
#define NET_DIGEST_H

#include <stddef.h>
#include <stdint.h>

enum { DIGEST_BYTES = 32 };

void digest_sha256(uint8_t ret[DIGEST_BYTES], const void *data, size_t bytes);

#endif

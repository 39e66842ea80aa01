#define OPENSSL_SUPPRESS_DEPRECATED /* these take no memory */
#include "net/digest.h"

#include <openssl/sha.h>

_Static_assert(SHA256_DIGEST_LENGTH == DIGEST_BYTES, "of SHA-256");

void digest_sha256(uint8_t ret[DIGEST_BYTES], const void *data, size_t bytes)
{
    SHA256_CTX context;

    (void)SHA256_Init(&context);
    (void)SHA256_Update(&context, data, bytes);
    (void)SHA256_Final(ret, &context);
}

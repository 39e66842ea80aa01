#include "fleet/outlets/signature.h"

#include "base/buffer.h"

#include <inttypes.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>

enum { DIGEST_BYTES = 32, TIMESTAMP_ROOM = 32 };

bool signature_of(char ret[static SIGNATURE_ROOM], const char *secret, int64_t at_s,
                  const void *body, size_t bytes)
{
    unsigned char digest[DIGEST_BYTES];
    struct buffer text;
    bool is_made;

    buffer_init(&text, TIMESTAMP_ROOM + bytes);
    buffer_printf(&text, "%" PRId64 ".", at_s);
    buffer_put(&text, body, bytes);
    is_made = !text.failed && HMAC(EVP_sha256(), secret, (int)strlen(secret), text.data, text.bytes,
                                   digest, NULL) != NULL;
    buffer_fini(&text);
    if (is_made) {
        size_t used = (size_t)snprintf(ret, SIGNATURE_ROOM, "sha256=");
        for (size_t i = 0; i < DIGEST_BYTES; i++) {
            used += (size_t)snprintf(ret + used, SIGNATURE_ROOM - used, "%02x", digest[i]);
        }
    }
    return is_made;
}

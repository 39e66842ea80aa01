#include "guardian/certificate.h"

#include "base/crc32c.h"

#include <string.h>

enum { VERSION = 7 };

static void put_little(uint8_t *to, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        to[i] = (uint8_t)(value >> (8 * i));
    }
}

static uint64_t get_little(const uint8_t *from, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = bytes; i > 0; i--) {
        value = value << 8 | from[i - 1];
    }
    return value;
}

void certificate_encode(uint8_t ret[CERTIFICATE_BYTES], const struct certificate *certificate)
{
    memset(ret, 0, CERTIFICATE_BYTES);
    put_little(ret, CERTIFICATE_BYTES, 4);
    ret[4] = VERSION;
    ret[5] = CERTIFICATE_TYPE;
    put_little(ret + 6, certificate->cluster, 4);
    put_little(ret + 10, certificate->node, 8);
    put_little(ret + 18, certificate->incarnation, 8);
    put_little(ret + 26, certificate->heir, 8);
    memcpy(ret + 34, certificate->secret, CERTIFICATE_SECRET_BYTES);
    put_little(ret + 74, crc32c(0, ret, 74), 4);
}

bool certificate_decode(struct certificate *ret, const void *data, size_t bytes)
{
    const uint8_t *raw = data;

    if (bytes != CERTIFICATE_BYTES || get_little(raw, 4) != CERTIFICATE_BYTES ||
        raw[4] != VERSION || raw[5] != CERTIFICATE_TYPE || get_little(raw + 66, 8) != 0 ||
        get_little(raw + 74, 4) != crc32c(0, raw, 74)) {
        return false;
    }
    ret->cluster = (uint32_t)get_little(raw + 6, 4);
    ret->node = get_little(raw + 10, 8);
    ret->incarnation = get_little(raw + 18, 8);
    ret->heir = get_little(raw + 26, 8);
    memcpy(ret->secret, raw + 34, CERTIFICATE_SECRET_BYTES);
    return true;
}

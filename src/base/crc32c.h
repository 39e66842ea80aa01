/* CRC-32C (Castagnoli), as in RFC 3720: finds torn and flipped bytes; it authenticates nothing. */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Goes on from `sum` (0 to begin), so that a sum can be taken piece by piece. */
uint32_t crc32c(uint32_t sum, const void *data, size_t bytes);

#endif

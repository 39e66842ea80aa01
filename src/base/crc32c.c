#include "base/crc32c.h"

uint32_t crc32c(uint32_t sum, const void *data, size_t bytes)
{
    const uint8_t *byte = data;

    /* Bit by bit, four at a time: our frames are short, and a table of 16 needs no start-up. */
    static const uint32_t nibble[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
                                        0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
                                        0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};

    sum = ~sum;
    for (size_t i = 0; i < bytes; i++) {
        sum ^= byte[i];
        sum = sum >> 4 ^ nibble[sum & 15];
        sum = sum >> 4 ^ nibble[sum & 15];
    }
    return ~sum;
}

#include "base/crc32c.h"

#include <string.h>

/* Bit by bit, four at a time: a table of 16 needs no start-up. */
static uint32_t by_table(uint32_t sum, const uint8_t *byte, size_t bytes)
{
    static const uint32_t nibble[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
                                        0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
                                        0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};

    for (size_t i = 0; i < bytes; i++) {
        sum ^= byte[i];
        sum = sum >> 4 ^ nibble[sum & 15];
        sum = sum >> 4 ^ nibble[sum & 15];
    }
    return sum;
}

#ifdef __x86_64__
/* Each entry of a log is summed several times on its way: by the table that was a quarter of the
 * processor time of a group that writes much. */
__attribute__((target("sse4.2"))) static uint32_t by_processor(uint32_t sum, const uint8_t *byte,
                                                               size_t bytes)
{
    uint64_t wide = sum, word;

    for (; bytes >= sizeof(word); bytes -= sizeof(word), byte += sizeof(word)) {
        memcpy(&word, byte, sizeof(word));
        wide = __builtin_ia32_crc32di(wide, word);
    }
    for (sum = (uint32_t)wide; bytes > 0; bytes--) {
        sum = __builtin_ia32_crc32qi(sum, *byte++);
    }
    return sum;
}
#endif

uint32_t crc32c(uint32_t sum, const void *data, size_t bytes)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("sse4.2")) {
        return ~by_processor(~sum, data, bytes);
    }
#endif
    return ~by_table(~sum, data, bytes);
}

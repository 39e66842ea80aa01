/* Parts of messages, as a member may send them on one connection: what is taken is given back, what
 * is whole has come in order, and memory stays within what has come. */
#include "provider/raft/parcels.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void must(bool condition)
{
    if (!condition) {
        __builtin_trap();
    }
}

static void read_message(const void *data, size_t bytes)
{
    static uint8_t again[PARCEL_BYTES_MAX];
    struct parcel_message message;

    if (parcel_read(&message, data, bytes)) {
        parcel_write(again, message.channel, strlen(message.channel), message.data, message.bytes);
        must(memcmp(again, data, bytes) == 0);
    }
}

static void write_again(const struct part *part, const uint8_t *data, size_t bytes)
{
    struct buffer buffer;

    buffer_init(&buffer, PART_HEAD_BYTES + PART_BYTES_MAX);
    part_put(&buffer, part);
    must(!buffer.failed && buffer.bytes == bytes && memcmp(buffer.data, data, bytes) == 0);
    buffer_fini(&buffer);
}

/* The input is a row of parts, each behind its length (u16). */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct reader input = reader_of(data, bytes);
    struct assembly assembly;
    size_t came = 0;

    read_message(data, bytes);
    assembly_init(&assembly);
    while (input.bytes > 0 && !input.failed) {
        size_t length = reader_u16(&input);
        const uint8_t *raw = reader_take(&input, length);
        struct reader reader = reader_of(raw, length);
        const void *whole = NULL;
        struct part part;
        if (!raw || !part_take(&part, &reader)) {
            continue;
        }
        write_again(&part, raw, length);
        came += part.bytes;
        if (assembly_take(&assembly, &part, &whole)) {
            must(part.parcel_bytes <= came);
            read_message(whole, part.parcel_bytes);
            assembly_clear(&assembly);
        }
        must(assembly.received.bytes <= came && assembly.received.capacity <= 4 * came + 64);
    }
    assembly_fini(&assembly);
    return 0;
}

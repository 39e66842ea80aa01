#include "detector/frame_heads.h"

#include <stdbool.h>

enum {
    CONTROL = 0x08, /* of the opcode */
    MASKED = 0x80,
    LENGTH = 0x7f,
    LENGTH_2 = 126, /* it is in the 2 bytes that follow */
    LENGTH_8 = 127,
    KEY_BYTES = 4
};

static unsigned length_bytes(const struct frame_heads *frames)
{
    unsigned length = frames->head[1] & LENGTH;

    return length == LENGTH_2 ? 2 : length == LENGTH_8 ? 8 : 0;
}

static bool is_whole(const struct frame_heads *frames)
{
    return frames->head_bytes >= 2 &&
           frames->head_bytes ==
               2 + length_bytes(frames) + ((frames->head[1] & MASKED) != 0 ? KEY_BYTES : 0);
}

static uint64_t length_of(const struct frame_heads *frames)
{
    unsigned bytes = length_bytes(frames);
    uint64_t length = bytes == 0 ? frames->head[1] & LENGTH : 0;

    for (unsigned i = 0; i < bytes; i++) {
        length = length << 8 | frames->head[2 + i];
    }
    return length;
}

static const char *fault_of(const struct frame_heads *frames, uint64_t length)
{
    unsigned bytes = length_bytes(frames);

    if ((frames->head[1] & MASKED) == 0) {
        return "frames of a client must be masked";
    }
    if ((bytes == 2 && length < LENGTH_2) || (bytes == 8 && (length >> 16 == 0 || length >> 63))) {
        return "the length of a frame must take as few bytes as it can";
    }
    return NULL;
}

static void end_head(struct frame_heads *frames)
{
    frames->payload = length_of(frames);
    if (frames->fault == NULL) {
        frames->fault = fault_of(frames, frames->payload);
    }
    if ((frames->head[0] & CONTROL) != 0) {
        frames->control_bytes += frames->head_bytes;
    }
    frames->head_bytes = 0; /* the opcode stays */
}

static size_t skip_payload(struct frame_heads *frames, size_t count)
{
    size_t skipped = count < frames->payload ? count : (size_t)frames->payload;

    frames->payload -= skipped;
    if ((frames->head[0] & CONTROL) != 0) {
        frames->control_bytes += skipped;
    }
    return skipped;
}

void frame_heads_read(struct frame_heads *frames, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;

    while (count > 0) {
        size_t read = 1;

        if (frames->payload > 0) {
            read = skip_payload(frames, count);
        } else {
            frames->head[frames->head_bytes++] = *at;
            if (is_whole(frames)) {
                end_head(frames);
            }
        }
        at += read;
        count -= read;
    }
}

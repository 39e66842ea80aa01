/* Parts: a message of a channel may be larger than a heartbeat should wait for, so it crosses a
 * link in parts. A parcel is what the parts of one message make together. The payload of a part's
 * frame, little-endian:
 *
 *   u64 parcel   its number, above that of every earlier parcel of this process
 *   u32 bytes    of the whole parcel, 2 to PARCEL_BYTES_MAX
 *   u32 offset   of this part in the parcel
 *   data         to the frame's end, 1 to PART_BYTES_MAX
 *
 * A parcel:
 *
 *   u16 length of the channel's name, 0 to PROVIDER_KEY_MAX
 *   the name, which has no zero byte
 *   the message, to the parcel's end
 *
 * Pure. Inside of this folder only.
 */
#ifndef PROVIDER_RAFT_PART_H
#define PROVIDER_RAFT_PART_H

#include "base/buffer.h"
#include "provider/provider.h"

enum {
    PART_HEAD_BYTES = 16,
    PART_BYTES_MAX = 16 * 1024 - 64, /* with its frame still one record of TLS */
    PARCEL_HEAD_BYTES = 2,
    PARCEL_BYTES_MAX = PARCEL_HEAD_BYTES + PROVIDER_KEY_MAX + PROVIDER_VALUE_MAX,
};

struct part {
    uint64_t parcel;
    size_t parcel_bytes;
    size_t offset;
    const void *data; /* borrowed */
    size_t bytes;
};

void part_put(struct buffer *buffer, const struct part *part);
/* Takes all that is left. False: it is not what part_put() writes. */
bool part_take(struct part *ret, struct reader *reader);

struct parcel_message {
    char channel[PROVIDER_KEY_MAX + 1];
    const void *data; /* borrowed from the parcel */
    size_t bytes;
};

/* Writes PARCEL_HEAD_BYTES + length + bytes bytes; both are within the limits. */
void parcel_write(uint8_t *ret, const char *channel, size_t length, const void *data, size_t bytes);
/* False: it is not what parcel_write() writes. */
bool parcel_read(struct parcel_message *ret, const void *data, size_t bytes);

#endif

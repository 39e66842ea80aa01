#include "provider/raft/part.h"

#include <string.h>

void part_put(struct buffer *buffer, const struct part *part)
{
    buffer_put_u64(buffer, part->parcel);
    buffer_put_u32(buffer, (uint32_t)part->parcel_bytes);
    buffer_put_u32(buffer, (uint32_t)part->offset);
    buffer_put(buffer, part->data, part->bytes);
}

bool part_take(struct part *ret, struct reader *reader)
{
    struct part part = {.parcel = reader_u64(reader)};

    part.parcel_bytes = reader_u32(reader);
    part.offset = reader_u32(reader);
    part.bytes = reader->bytes;
    part.data = reader_take(reader, reader->bytes);
    if (reader->failed || part.parcel == 0 || part.parcel_bytes < PARCEL_HEAD_BYTES ||
        part.parcel_bytes > PARCEL_BYTES_MAX || part.bytes == 0 || part.bytes > PART_BYTES_MAX ||
        part.offset > part.parcel_bytes || part.bytes > part.parcel_bytes - part.offset) {
        return false;
    }
    *ret = part;
    return true;
}

void parcel_write(uint8_t *ret, const char *channel, size_t length, const void *data, size_t bytes)
{
    ret[0] = (uint8_t)length;
    ret[1] = (uint8_t)(length >> 8);
    memcpy(ret + PARCEL_HEAD_BYTES, channel, length);
    if (bytes > 0) {
        memcpy(ret + PARCEL_HEAD_BYTES + length, data, bytes);
    }
}

bool parcel_read(struct parcel_message *ret, const void *data, size_t bytes)
{
    struct reader reader = reader_of(data, bytes);
    size_t length = reader_u16(&reader);
    const uint8_t *channel = reader_take(&reader, length);

    if (!channel || length > PROVIDER_KEY_MAX || memchr(channel, '\0', length) ||
        reader.bytes > PROVIDER_VALUE_MAX) {
        return false;
    }
    memcpy(ret->channel, channel, length);
    ret->channel[length] = '\0';
    ret->bytes = reader.bytes;
    ret->data = reader_take(&reader, reader.bytes);
    return true;
}

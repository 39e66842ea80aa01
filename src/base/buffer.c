#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 };

void buffer_init(struct buffer *buffer, size_t max_bytes)
{
    *buffer = (struct buffer){.max_bytes = max_bytes};
}

void buffer_fini(struct buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct buffer){.max_bytes = buffer->max_bytes};
}

void buffer_clear(struct buffer *buffer)
{
    buffer->bytes = 0;
    buffer->failed = false;
}

void buffer_consume(struct buffer *buffer, size_t bytes)
{
    if (bytes > buffer->bytes) {
        bytes = buffer->bytes;
    }
    buffer->bytes -= bytes;
    if (buffer->bytes > 0 && bytes > 0) {
        memmove(buffer->data, buffer->data + bytes, buffer->bytes);
    }
}

static bool grow_to(struct buffer *buffer, size_t needed)
{
    size_t capacity = buffer->capacity ? buffer->capacity : FIRST_CAPACITY;
    uint8_t *data;

    while (capacity < needed) {
        capacity *= 2;
    }
    data = realloc(buffer->data, capacity);
    if (!data) {
        return false;
    }
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}

uint8_t *buffer_reserve(struct buffer *buffer, size_t bytes)
{
    if (buffer->failed || bytes > buffer->max_bytes - buffer->bytes) {
        buffer->failed = true;
        return NULL;
    }
    if (buffer->bytes + bytes > buffer->capacity || !buffer->data) {
        if (!grow_to(buffer, buffer->bytes + bytes)) {
            buffer->failed = true;
            return NULL;
        }
    }
    return buffer->data + buffer->bytes;
}

void buffer_put(struct buffer *buffer, const void *data, size_t bytes)
{
    uint8_t *room = buffer_reserve(buffer, bytes);
    if (room && bytes > 0) {
        memcpy(room, data, bytes);
        buffer->bytes += bytes;
    }
}

void buffer_put_u8(struct buffer *buffer, uint8_t value)
{
    buffer_put(buffer, &value, sizeof(value));
}

void buffer_put_u16(struct buffer *buffer, uint16_t value)
{
    uint8_t raw[2] = {(uint8_t)value, (uint8_t)(value >> 8)};
    buffer_put(buffer, raw, sizeof(raw));
}

void buffer_put_u32(struct buffer *buffer, uint32_t value)
{
    buffer_put_u16(buffer, (uint16_t)value);
    buffer_put_u16(buffer, (uint16_t)(value >> 16));
}

void buffer_put_u64(struct buffer *buffer, uint64_t value)
{
    buffer_put_u32(buffer, (uint32_t)value);
    buffer_put_u32(buffer, (uint32_t)(value >> 32));
}

void buffer_put_text(struct buffer *buffer, const char *text)
{
    buffer_put(buffer, text, strlen(text));
}

void buffer_printf(struct buffer *buffer, const char *format, ...)
{
    va_list arguments;
    va_list again;
    int length;

    va_start(arguments, format);
    va_copy(again, arguments);
    length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) {
        buffer->failed = true;
    } else {
        uint8_t *room = buffer_reserve(buffer, (size_t)length + 1);
        if (room) {
            (void)vsnprintf((char *)room, (size_t)length + 1, format, again);
            buffer->bytes += (size_t)length;
        }
    }
    va_end(again);
}

const char *buffer_text(struct buffer *buffer)
{
    uint8_t *room = buffer_reserve(buffer, 1);
    if (!room) {
        return NULL;
    }
    *room = '\0';
    return (const char *)buffer->data;
}

struct reader reader_of(const void *data, size_t bytes)
{
    return (struct reader){.data = data, .bytes = bytes};
}

const uint8_t *reader_take(struct reader *reader, size_t bytes)
{
    const uint8_t *data = reader->data;
    if (reader->failed || bytes > reader->bytes) {
        reader->failed = true;
        return NULL;
    }
    if (bytes > 0) {
        reader->data += bytes;
        reader->bytes -= bytes;
    }
    return data;
}

static uint64_t read_little_endian(struct reader *reader, size_t bytes)
{
    const uint8_t *raw = reader_take(reader, bytes);
    uint64_t value = 0;
    if (raw) {
        for (size_t i = bytes; i > 0; i--) {
            value = value << 8 | raw[i - 1];
        }
    }
    return value;
}

uint8_t reader_u8(struct reader *reader)
{
    return (uint8_t)read_little_endian(reader, 1);
}

uint16_t reader_u16(struct reader *reader)
{
    return (uint16_t)read_little_endian(reader, 2);
}

uint32_t reader_u32(struct reader *reader)
{
    return (uint32_t)read_little_endian(reader, 4);
}

uint64_t reader_u64(struct reader *reader)
{
    return read_little_endian(reader, 8);
}

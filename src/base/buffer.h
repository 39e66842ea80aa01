/* A growing run of bytes with a maximum, and a cursor that reads one.
 *
 * Every buffer has a maximum: a peer can make it grow to `max_bytes`, and then it refuses. Writers
 * fail softly: after the first failure (out of memory, over the maximum) every
 * further append does nothing and `failed` stays true, so that a run of appends is checked once.
 * Readers likewise: after reading past the end, `failed` is true and every further read gives 0.
 * Numbers are little-endian on our wires.
 */
#ifndef BASE_BUFFER_H
#define BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer {
    uint8_t *data; /* owned; NULL while nothing was appended */
    size_t bytes;  /* used */
    size_t capacity;
    size_t max_bytes;
    bool failed;
};

void buffer_init(struct buffer *buffer, size_t max_bytes);
void buffer_fini(struct buffer *buffer); /* frees; the struct may be initialised again */

/* Forgets the content and the failure, keeps the memory. */
void buffer_clear(struct buffer *buffer);

/* Drops the first `bytes` bytes (at most all). */
void buffer_consume(struct buffer *buffer, size_t bytes);

/* Room for `bytes` more; the caller writes there and then adds to buffer->bytes. NULL on failure.
 */
uint8_t *buffer_reserve(struct buffer *buffer, size_t bytes);

void buffer_put(struct buffer *buffer, const void *data, size_t bytes);
void buffer_put_u8(struct buffer *buffer, uint8_t value);
void buffer_put_u16(struct buffer *buffer, uint16_t value);
void buffer_put_u32(struct buffer *buffer, uint32_t value);
void buffer_put_u64(struct buffer *buffer, uint64_t value);
void buffer_put_text(struct buffer *buffer, const char *text); /* without the NUL */
void buffer_printf(struct buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The content as a C string: appends a NUL that does not count. NULL on failure. */
const char *buffer_text(struct buffer *buffer);

struct reader {
    const uint8_t *data; /* borrowed */
    size_t bytes;        /* left */
    bool failed;
};

struct reader reader_of(const void *data, size_t bytes);
uint8_t reader_u8(struct reader *reader);
uint16_t reader_u16(struct reader *reader);
uint32_t reader_u32(struct reader *reader);
uint64_t reader_u64(struct reader *reader);
/* The next `bytes` bytes, borrowed from the reader's data; NULL (and failed) if there are fewer. */
const uint8_t *reader_take(struct reader *reader, size_t bytes);

#endif

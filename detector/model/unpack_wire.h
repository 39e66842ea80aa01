/* The messages of archive_unpack() and its child, baton-unpack.
 *
 *   parent ── request ─────────▶ child, confined, which has the archive and nothing else
 *          ── "pipeline.json" ─▶
 *          ◀─ SIZE, DATA …, DONE    or ERROR
 *          ── the name of the first file that it names ─▶ …, until the parent closes the socket
 *
 * One message a packet. The child makes no file and names none. It reads bytes from outside, so the
 * parent trusts its messages no more than these bytes.
 */
#ifndef DETECTOR_MODEL_UNPACK_WIRE_H
#define DETECTOR_MODEL_UNPACK_WIRE_H

#include <stddef.h>
#include <stdint.h>

enum {
    UNPACK_SOCKET = 3, /* descriptors that the child inherits */
    UNPACK_ARCHIVE = 4,
    UNPACK_DATA_MAX = 64 << 10,
};

struct unpack_request {
    uint64_t archive_bytes_max, unpacked_bytes_max;
    int32_t entries_max;
    int32_t reserved; /* 0 */
};

enum unpack_type { UNPACK_SIZE = 1, UNPACK_DATA, UNPACK_DONE, UNPACK_ERROR };

struct unpack_message {
    uint32_t type;
    int32_t code;                        /* ERROR: negative */
    uint64_t bytes;                      /* SIZE: the file's length; else 0 */
    unsigned char data[UNPACK_DATA_MAX]; /* DATA; ERROR: the text, without NUL */
};

enum { UNPACK_HEAD_BYTES = offsetof(struct unpack_message, data) };

#endif

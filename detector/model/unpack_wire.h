/* The messages of archive_unpack() and its child, baton-unpack.
 *
 *   parent ── "pipeline.json" ─▶ child, confined, which has the archive and nothing else
 *          ◀─ its bytes, in as many messages as it needs; an empty one ends the file
 *             or an error, which ends all
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
    UNPACK_DATA_MAX = 64 << 10,
};

struct unpack_message {
    int32_t code;                        /* 0, or negative: an error */
    unsigned char data[UNPACK_DATA_MAX]; /* of the file; or the text of the error, without NUL */
};

enum { UNPACK_HEAD_BYTES = offsetof(struct unpack_message, data) };

#endif

/* Reads along with what a WebSocket client sends, for what libwebsockets keeps to itself: whether
 * its frames are masked, as they must be, and how much of it are pings and other control frames.
 *
 *   FIN, 3 bits, opcode (4) │ mask?, length (7) │ length: 0, 2 or 8 bytes │ key: 0 or 4 │ payload
 *
 * Whatever else is wrong with a frame is found elsewhere. Pure: bytes in, in pieces of any size.
 */
#ifndef DETECTOR_FRAME_HEADS_H
#define DETECTOR_FRAME_HEADS_H

#include <stddef.h>
#include <stdint.h>

enum { FRAME_HEAD_MAX = 14 };

/* Zero, before the first byte. */
struct frame_heads {
    unsigned char head[FRAME_HEAD_MAX];
    unsigned head_bytes;
    uint64_t payload;       /* bytes of it that are still to come */
    uint64_t control_bytes; /* of control frames, so far */
    const char *fault;      /* of the first frame that no client sends; NULL: none yet */
};

void frame_heads_read(struct frame_heads *frames, const void *bytes, size_t count);

#endif

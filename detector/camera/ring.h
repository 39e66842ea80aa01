/* Memory that a camera's child writes and its parent reads: slots for pictures.
 *
 *   slot 0 | slot 1 | …     each as far apart as the largest picture needs
 *
 * A slot that was shown is the parent's until the parent gives it back (message.h), so a frame that
 * is being read is never overwritten. The child never waits for that: it shows RING_SHOWN_MAX at a
 * time, its decoder is lent others as long as one is left, and a picture that was decoded elsewhere
 * is copied into that one. A picture that is due while so many are shown is left out, and the
 * parent sees the gap in the numbers.
 *
 * The parent makes the memory, and only what was written costs any. Both sides compute the layout
 * of a picture from width and height, so no offset ever comes from the child. The memory is sealed:
 * it cannot be truncated under the reader, which would be a SIGBUS. The child can only put wrong
 * pixels there.
 */
#ifndef DETECTOR_CAMERA_RING_H
#define DETECTOR_CAMERA_RING_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum {
    RING_SLOTS = 24, /* the sixteen references of a decoder, and more */
    RING_HELD_MAX = 17,
    RING_SHOWN_MAX = RING_HELD_MAX + 1, /* the parent sees, and counts, that one more has come */
    RING_ALIGNMENT = 64,                /* of rows and planes, for vector code */
    RING_SIDE_MAX = 8192,
    RING_PIXELS_MAX = 8192 * 4352,
    RING_STRIDE = 56 << 20, /* from slot to slot; no picture needs more */
    RING_BYTES = RING_SLOTS * RING_STRIDE,
};

/* The layout of planar 4:2:0: Y, U, V. */
struct ring_layout {
    int width, height;
    int stride[3];
    int rows[3];      /* with the rows that decoders round up to, which show nothing */
    size_t offset[3]; /* within the slot */
    size_t bytes;     /* of the slot, in whole pages */
};

/* Returns BATON_ETOOBIG, and names the limit: a side is 0 or above RING_SIDE_MAX, or there are more
 * than RING_PIXELS_MAX. */
int ring_layout(struct ring_layout *ret, uint32_t width, uint32_t height,
                struct baton_error *reterr);

#endif

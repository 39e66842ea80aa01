/* The child's rings, each of one size of picture, and the slots that a decoder holds.
 *
 *   decoder needs memory for a picture ─▶ gets a slot of the ring of that size ─▶ decodes into it
 *     ─▶ shown: that slot is committed, nothing is copied ─▶ the decoder may still predict from it,
 *        and the slot is free again once the decoder lets go
 *
 * Only the decoder writes to a slot that it holds; it only reads earlier pictures. So a shown
 * picture does not change. If a picture cannot lie in a ring, because of its format, its codec or
 * for lack of a slot, it lies elsewhere and is copied when it is shown.
 */
#ifndef DETECTOR_CAMERA_RINGS_H
#define DETECTOR_CAMERA_RINGS_H

#include "detector/camera/ring.h"

#include <libavcodec/avcodec.h>

struct shared_ring;

struct rings {
    const struct ring_control *control;
    struct shared_ring
        *first; /* the newest; older ones stay as long as the decoder has slots of them */
    uint64_t made;
    AVBufferPool *spare; /* for pictures that find no slot */
    size_t spare_bytes;
};

void rings_init(struct rings *rings, const struct ring_control *control);
/* The decoder must be closed before. */
void rings_fini(struct rings *rings);

/* Returns the newest ring, which is made anew if that size differs. `ret_number` is its number,
 * above 0. Returns BATON_EINVAL for the size, or BATON_ENOMEM. */
int rings_need(struct ring_writer **ret, uint64_t *ret_number, struct rings *rings, uint32_t width,
               uint32_t height, struct baton_error *reterr);

/* Returns the ring and the slot of the picture, by the ring's layout, or NULL if it is in none. */
struct ring_writer *rings_find(struct rings *rings, const AVFrame *frame, int *ret_slot,
                               uint64_t *ret_number);

/* Gives the frame a slot for a picture of 4:2:0 of its size that is written once; the frame has it
 * until it is unref'd. False: there is none. */
bool rings_take(struct rings *rings, AVFrame *frame);

/* Returns the memory of unused slots to the system until it is needed again; the newest picture
 * stays. */
void rings_trim(struct rings *rings);

/* This is AVCodecContext.get_buffer2. */
int rings_lend(struct rings *rings, AVCodecContext *decoder, AVFrame *frame, int flags);

#endif

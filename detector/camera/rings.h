/* The child's rings, of one size of picture each, and what a decoder has of them.
 *
 *   decoder asks for a picture's memory ─▶ a slot of the ring of that size ─▶ it decodes into it
 *     ─▶ shown: that slot is committed, nothing is copied ─▶ the decoder may still predict from it;
 *        only when it lets go is the slot free again
 *
 * A slot that the decoder has is written to by nobody else; what it decoded before it only reads.
 * So a picture that is shown stays as it is. Where a picture cannot lie in a ring, because of its
 * format, its codec or because there is no slot left, it lies elsewhere and is copied when shown.
 */
#ifndef DETECTOR_CAMERA_RINGS_H
#define DETECTOR_CAMERA_RINGS_H

#include "detector/camera/ring.h"

#include <libavcodec/avcodec.h>

struct shared_ring;

struct rings {
    const struct ring_control *control;
    struct shared_ring *first; /* the newest; older ones as long as the decoder has slots of them */
    uint64_t made;
    AVBufferPool *spare; /* for pictures that find no slot */
    size_t spare_bytes;
};

void rings_init(struct rings *rings, const struct ring_control *control);
/* After the decoder. */
void rings_fini(struct rings *rings);

/* The newest ring, of that size; another one is made if it has another. `ret_number` is its own,
 * above 0. BATON_EINVAL for the size; BATON_ENOMEM. */
int rings_need(struct ring_writer **ret, uint64_t *ret_number, struct rings *rings, uint32_t width,
               uint32_t height, struct baton_error *reterr);

/* The ring and the slot in which the picture lies, as the ring's layout says. NULL: in none. */
struct ring_writer *rings_find(struct rings *rings, const AVFrame *frame, int *ret_slot,
                               uint64_t *ret_number);

/* A slot for a picture of 4:2:0 that is written once, of the frame's size; the frame has it until
 * it is unref'd. False: there is none. */
bool rings_take(struct rings *rings, AVFrame *frame);

/* What nobody has but the newest picture goes back to the system, until it is needed again. */
void rings_trim(struct rings *rings);

/* AVCodecContext.get_buffer2. */
int rings_lend(struct rings *rings, AVCodecContext *decoder, AVFrame *frame, int flags);

#endif

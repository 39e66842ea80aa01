/* The child's side of the ring (ring.h): who has its slots.
 *
 *   decoder needs memory for a picture ─▶ gets a slot ─▶ decodes into it
 *     ─▶ shown: the slot is the parent's, too, nothing is copied ─▶ the decoder may still predict
 *        from it, and the slot is free again once both let go
 *
 * Only the decoder writes to a slot that it has; it only reads earlier pictures. So a shown
 * picture does not change. If a picture cannot lie in the ring, because of its format, its codec or
 * for lack of a slot, it lies elsewhere and is copied when it is shown.
 */
#ifndef DETECTOR_CAMERA_SLOTS_H
#define DETECTOR_CAMERA_SLOTS_H

#include "detector/camera/ring.h"

#include <libavcodec/avcodec.h>
#include <stdbool.h>

/* All else is {0} at first. */
struct slots {
    uint8_t *memory;         /* the ring, borrowed */
    uint32_t lent;           /* one bit for each slot: a decoder has it */
    uint32_t shown;          /* the parent has it */
    uint32_t recent;         /* it was needed since slots_trim() */
    size_t used[RING_SLOTS]; /* bytes that have memory */
};

/* Returns a slot that is free to be written to by a picture of this layout, or -1 if none is. */
int slots_find_free(struct slots *slots, const struct ring_layout *layout);
/* Where the first plane of its picture is. */
uint8_t *slots_at(const struct slots *slots, int slot);
/* The parent has the slot until it gives it back. */
void slots_show(struct slots *slots, int slot);
/* A slot that is unknown is ignored. */
void slots_give_back(struct slots *slots, uint32_t slot);

/* Returns the slot of the picture if the layout's planes are the picture's and it is not shown,
 * else -1. */
int slots_find(const struct slots *slots, const struct ring_layout *layout, const AVFrame *frame);

/* Gives the frame a slot for a picture of 4:2:0 that is written once; the frame has it until it is
 * unref'd. False: there is none. */
bool slots_take(struct slots *slots, const struct ring_layout *layout, AVFrame *frame);
/* For AVCodecContext.get_buffer2, for a picture of the decoder's size. */
int slots_lend(struct slots *slots, const struct ring_layout *layout, AVCodecContext *decoder,
               AVFrame *frame, int flags);

/* Returns the memory of unused slots to the system until it is needed again. `keeps_recent`: only
 * of those that were not needed since the last call, either. */
void slots_trim(struct slots *slots, bool keeps_recent);

#endif

/* The child's rings, each of one size of picture, and who has their slots.
 *
 *   decoder needs memory for a picture ─▶ gets a slot of the ring of that size ─▶ decodes into it
 *     ─▶ shown: the slot is the parent's, too, nothing is copied ─▶ the decoder may still predict
 *        from it, and the slot is free again once both let go
 *
 * Only the decoder writes to a slot that it has; it only reads earlier pictures. So a shown
 * picture does not change. If a picture cannot lie in a ring, because of its format, its codec or
 * for lack of a slot, it lies elsewhere and is copied when it is shown.
 */
#ifndef DETECTOR_CAMERA_RINGS_H
#define DETECTOR_CAMERA_RINGS_H

#include "detector/camera/ring.h"

#include <libavcodec/avcodec.h>

struct rings;

struct ring {
    struct ring *next;
    struct rings *rings;
    uint64_t number; /* from 1 on */
    struct ring_layout layout;
    int fd;                    /* is sent to the parent */
    uint8_t *memory;           /* owned */
    uint32_t lent;             /* one bit for each slot: a decoder has it */
    uint32_t used;             /* one bit for each slot: it has memory */
    uint32_t recent;           /* one bit for each slot: it was needed since rings_trim() */
    uint8_t shown[RING_SLOTS]; /* how often the parent has it */
};

struct rings {
    struct ring *first; /* the newest; older ones stay as long as the decoder has slots of them */
    uint64_t made;
};

/* The decoder must be closed before; {0} is the first value. */
void rings_fini(struct rings *rings);

/* Returns the newest ring, which is made anew if that size differs. Returns BATON_ETOOBIG for the
 * size, or BATON_ENOMEM. */
int rings_need(struct ring **ret, struct rings *rings, uint32_t width, uint32_t height,
               struct baton_error *reterr);
/* Returns a slot that is free to write to, or -1 if none is. */
int ring_free_slot(struct ring *ring);
uint8_t *ring_plane(const struct ring *ring, int slot, int plane);
/* The parent has the slot until it gives it back. */
void ring_show(struct ring *ring, int slot);
/* A ring or slot that is unknown is ignored. */
void rings_give_back(struct rings *rings, uint64_t number, uint32_t slot);

/* Returns the ring and the slot of the picture, by the ring's layout, or NULL if it is in none. */
struct ring *rings_find(struct rings *rings, const AVFrame *frame, int *ret_slot);

/* Gives the frame a slot for a picture of 4:2:0 of that size that is written once; the frame has it
 * until it is unref'd. False: there is none. */
bool rings_take(struct rings *rings, AVFrame *frame, int width, int height);
/* This is AVCodecContext.get_buffer2. */
int rings_lend(struct rings *rings, AVCodecContext *decoder, AVFrame *frame, int flags);

/* Returns the memory of unused slots to the system until it is needed again. `keeps_recent`: only
 * of those that were not needed since the last call, either. */
void rings_trim(struct rings *rings, bool keeps_recent);

#endif

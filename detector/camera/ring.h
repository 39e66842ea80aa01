/* Frames in shared memory: the child writes them, the parent reads them in place.
 *
 *   ring     page of sequence[RING_SLOTS] | slot 0 | slot 1 | …     child writes, parent reads
 *   control  held[RING_SLOTS], interval, …                          parent writes, child reads
 *
 * The newest frame comes first: the child never waits for a reader, and a frame that is being read
 * is never overwritten. Both follow from one rule on each side. The child marks a slot as empty and
 * *then* checks whether it is held; the parent marks it as held and *then* checks whether it still
 * has the announced frame. In one total order of these four steps, one of the two sees the other
 * and steps back. The parent holds at most RING_HELD_MAX slots and the child's decoder has a
 * bounded number of others, so the child always finds a slot that is neither held nor lent nor the
 * newest. The exception is the moment in which the parent holds one more, to copy it: then a frame
 * may be dropped.
 *
 * A ring is of one size of picture; another size is another ring. Both sides compute the layout
 * from width and height, so no offset ever comes from the child. The memory is sealed: it cannot be
 * truncated under the reader, which would be a SIGBUS. The child can only put wrong pixels there.
 */
#ifndef DETECTOR_CAMERA_RING_H
#define DETECTOR_CAMERA_RING_H

#include "base/clock.h"
#include "base/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RING_SLOTS = 24,     /* at most: the sixteen references of a decoder, and more */
    RING_SLOTS_MIN = 14, /* for large pictures, of which decoders keep fewer */
    RING_HELD_MAX = 5,
    RING_ALIGNMENT = 64, /* of rows and planes, for vector code */
    RING_SIDE_MAX = 8192,
    RING_PIXELS_MAX = 8192 * 4352,
};

struct ring_control {
    _Atomic uint32_t held[RING_SLOTS]; /* counts: a slot of the previous ring may still be held */
    _Atomic uint32_t is_stopping;      /* the child ends its session with the camera, and itself */
    _Atomic uint32_t interval_us;      /* the least time between two frames; 0: every frame */
    _Atomic uint64_t returned;         /* sequence of the last frame that was given back */
    _Atomic uint32_t rings; /* count of the bell, and the futex on which the child sleeps */
};

/* The parent rings the bell after it has changed a field on which the child may sleep: is_stopping,
 * returned or interval_us. */
void ring_control_ring(struct ring_control *control);
/* The child takes the count of the bell, checks whether it must sleep, and then sleeps until the
 * count changes, or for `most`. It may wake without a reason. */
uint32_t ring_control_rings(const struct ring_control *control);
void ring_control_sleep(const struct ring_control *control, uint32_t rings, span most);

/* The layout of planar 4:2:0: Y, U, V. */
struct ring_layout {
    int width, height;
    int stride[3];
    int rows[3];      /* with the rows that decoders round up to, which show nothing */
    size_t offset[3]; /* within the slot */
    int slots;
    size_t slot_bytes;
    size_t bytes; /* of the whole ring */
};

/* Names the limit that a picture is above. */
int ring_refuse(struct baton_error *reterr, uint32_t width, uint32_t height);
/* False: a side is 0 or above RING_SIDE_MAX, or there are more than RING_PIXELS_MAX. */
bool ring_layout(struct ring_layout *ret, uint32_t width, uint32_t height);

struct ring_writer {
    struct ring_layout layout;
    int fd;          /* is sent to the reader; -1: there is no ring */
    uint8_t *memory; /* owned */
    int newest;      /* slot; -1: none yet */
    uint32_t lent;   /* one bit for each slot: a decoder has it */
    uint32_t used;   /* one bit for each slot: it has memory */
};

/* Returns BATON_EINVAL for the size, or BATON_ENOMEM. */
int ring_writer_open(struct ring_writer *ret, uint32_t width, uint32_t height,
                     struct baton_error *reterr);
void ring_writer_close(struct ring_writer *writer);
/* Returns a slot to write to, emptied, or -1 if none is free, which only a reader that breaks the
 * rules causes. */
int ring_writer_begin(struct ring_writer *writer, const struct ring_control *control);
/* Returns a slot for a decoder, which has it until ring_writer_give_back(); it may be committed
 * meanwhile. -1: the remaining slots are needed for copies. */
int ring_writer_lend(struct ring_writer *writer, const struct ring_control *control);
void ring_writer_give_back(struct ring_writer *writer, int slot);
uint8_t *ring_writer_plane(const struct ring_writer *writer, int slot, int plane);
/* Returns the memory of unused slots to the system, except that of the newest. */
void ring_writer_trim(struct ring_writer *writer, const struct ring_control *control);
/* From now on the slot holds the frame `sequence`, which is not 0 and never used again. */
void ring_writer_commit(struct ring_writer *writer, int slot, uint64_t sequence);

struct ring_reader {
    struct ring_layout layout;
    const uint8_t *memory; /* owned */
};

/* Maps the ring read-only; `fd` stays the caller's. Returns BATON_EPROTO if it is not sealed memory
 * of exactly that size. */
int ring_reader_open(struct ring_reader *ret, int fd, uint32_t width, uint32_t height,
                     struct baton_error *reterr);
void ring_reader_close(struct ring_reader *reader);
/* Holds the slot. False: it has another frame by now, and is not held. */
bool ring_reader_claim(const struct ring_reader *reader, struct ring_control *control, int slot,
                       uint64_t sequence);
void ring_release(struct ring_control *control, int slot);
const uint8_t *ring_reader_plane(const struct ring_reader *reader, int slot, int plane);

#endif

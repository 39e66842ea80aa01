/* A batch: some bodies of a scene, all at one frame; and its form as bytes, which is a checkpoint
 * and what a worker is sent. A batch of all bodies is the whole scene.
 *
 * Bytes, little-endian; a double is the 64 bits of its IEEE 754 form:
 *
 *   u32 magic "SOFT" | u16 version 1 | u16 kind (1 batch, 2 bounds) | u32 scene |
 *   u32 bodies in the scene | u64 frame | u32 rows | rows | u32 CRC-32C of all before it
 *
 *   row of a batch    u32 id | double half width, half height | 49 times double x, y, vx, vy
 *   row of bounds     double x, y, vx, vy, xx, xy, yy        (of every body of the scene, by id)
 *
 * What is damaged, foreign or absurd is refused: a wrong length, magic, version, kind or sum; ids
 * that do not ascend; a number that is not finite or above 10^6; an ellipse without area.
 */
#ifndef SOFTBODY_BATCH_H
#define SOFTBODY_BATCH_H

#include "base/buffer.h"
#include "base/error.h"
#include "softbody/body.h"

enum {
    BATCH_HEAD_BYTES = 28,
    BATCH_ROW_BYTES = 4 + 8 * (2 + 4 * BODY_NODES),
    BATCH_BYTES_MAX = BATCH_HEAD_BYTES + SCENE_BODIES_MAX * BATCH_ROW_BYTES + 4,
    STEP_FRAMES_MAX = 6,
};

struct batch {
    uint32_t scene;        /* its number */
    uint32_t scene_bodies; /* in all batches */
    uint64_t frame;
    uint32_t count;
    struct body bodies[SCENE_BODIES_MAX]; /* by id */
};

/* Both append. The buffer fails softly, as buffers do. */
void batch_put(const struct batch *batch, struct buffer *buffer);
/* The bounds of all bodies. `all` is the whole scene. */
void batch_put_bounds(const struct batch *all, struct buffer *buffer);

/* BATON_ECORRUPT: the bytes are no batch, and the content of `ret` is undefined. */
int batch_take(struct batch *ret, const void *data, size_t bytes, struct baton_error *reterr);

/* Of every bit of every node: equal for equal states. */
uint64_t batch_hash(const struct batch *batch);

/* The work of a worker: moves a batch on by `frames` (1 to STEP_FRAMES_MAX) and appends the new
 * batch to `ret`. The bounds are those of the whole scene at the batch's frame. It is a pure
 * function: whoever computes it, and however often, gets the same bytes.
 *
 * BATON_ECORRUPT: the batch or the bounds are damaged; BATON_ECONFLICT: they are of different
 * scenes or frames; BATON_EINVAL: frames; BATON_ENOMEM. */
int softbody_step(const void *state, size_t state_bytes, const void *bounds, size_t bounds_bytes,
                  uint32_t frames, struct buffer *ret, struct baton_error *reterr);

#endif

/* Batches and bounds of the soft bodies (examples/softbody), with a sum that fits: refused, or
 * taken, moved and written again. */
#include "base/crc32c.h"
#include "softbody/batch.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static struct batch batch; /* large */

static void move(const struct buffer *state, const struct buffer *bounds)
{
    struct buffer moved;

    buffer_init(&moved, BATCH_BYTES_MAX);
    if (softbody_step(state->data, state->bytes, bounds->data, bounds->bytes, 1, &moved, NULL) ==
            0 &&
        moved.bytes != state->bytes) {
        abort();
    }
    buffer_fini(&moved);
}

/* What was taken is given back, and can be moved if it is a whole scene. */
static void use_batch(const struct buffer *state)
{
    struct buffer other;

    buffer_init(&other, BATCH_BYTES_MAX);
    batch_put(&batch, &other);
    if (other.bytes != state->bytes || memcmp(other.data, state->data, other.bytes) != 0) {
        abort();
    }
    buffer_clear(&other);
    batch_put_bounds(&batch, &other);
    move(state, &other);
    buffer_fini(&other);
}

/* The bounds meet a scene of one body. */
static void use_bounds(const struct buffer *bounds)
{
    struct buffer state;

    batch = (struct batch){.scene = 1, .scene_bodies = 1, .count = 1};
    body_place(&batch.bodies[0], 0, (struct vec){8, 2}, 1, 1, 0);
    buffer_init(&state, BATCH_BYTES_MAX);
    batch_put(&batch, &state);
    move(&state, bounds);
    buffer_fini(&state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct buffer sealed;

    buffer_init(&sealed, BATCH_BYTES_MAX);
    buffer_put(&sealed, data, bytes);
    buffer_put_u32(&sealed, crc32c(0, data, bytes));
    if (!sealed.failed) {
        if (batch_take(&batch, sealed.data, sealed.bytes, NULL) == 0) {
            use_batch(&sealed);
        }
        use_bounds(&sealed);
    }
    buffer_fini(&sealed);
    return 0;
}

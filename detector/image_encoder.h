/* JPEGs of stills, made in other threads: the loop never waits for one, and neither do the cameras.
 *
 *   encoder_ask ─▶ made already: at once
 *        ├───────▶ under way: waits with the others for the same one
 *        ├───────▶ a thread of libuv's pool ─▶ done, once for all that wait
 *        └───────▶ ENCODER_MAX are under way: refused
 *
 * A picture of one still, one shape and the same boxes is made at most once, as long as the still
 * keeps it: it keeps the newest ENCODER_KEPT_MAX shapes.
 */
#ifndef DETECTOR_IMAGE_ENCODER_H
#define DETECTOR_IMAGE_ENCODER_H

#include "base/error.h"
#include "detector/image.h"

#include <uv.h>

enum { ENCODER_MAX = 34, ENCODER_KEPT_MAX = 8 };

struct image {
    const uint8_t *jpeg; /* borrowed during the call, or until the still is released */
    size_t bytes;
};

/* `image` is NULL if it could not be made. On the loop's thread. */
typedef void encoder_done(void *userdata, const struct encoding *awaited, const struct image *image,
                          const struct baton_error *error);

struct encoder; /* opaque */

/* NULL: out of memory. */
struct encoder *encoder_new(uv_loop_t *loop, encoder_done *done, void *userdata);

/* `boxes` may be NULL. 0: *image is there. BATON_EBUSY: `done` will be called with *awaited, which
 * is no more than its name. BATON_EUNAVAILABLE: too many wait. BATON_ENOMEM. */
int encoder_ask(struct encoder *encoder, struct still *still, const struct image_shape *shape,
                const struct image_boxes *boxes, const struct encoding **awaited,
                struct image *image, struct baton_error *reterr);

struct encoder_counters {
    uint64_t made, refused;
    unsigned waiting; /* under way now */
};

const struct encoder_counters *encoder_counters(const struct encoder *encoder);

/* Close (`done` is not called any more), then run the loop until it is done, then free. NULL is
 * allowed. */
void encoder_close(struct encoder *encoder);
void encoder_free(struct encoder *encoder);

#endif

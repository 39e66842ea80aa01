/* Converts a cut of a frame to three planes of float32 of 0 to 1, which is what most models read.
 * Only picture.h's folder includes this header.
 *
 *   Y, U, V where the decoder put them ─▶ scaled by libyuv (means of boxes) ─▶ red, green, blue
 *
 * The scaled samples are as small as the result and stay in the cache; no part of the frame is
 * copied.
 */
#ifndef DETECTOR_CAMERA_FLOATS_H
#define DETECTOR_CAMERA_FLOATS_H

#include "detector/camera/frames.h"

struct float_planes {
    int width, height;
    float *plane[3]; /* red, green, blue */
    size_t stride;   /* floats from one row to the next */
};

enum { FLOATS_PIECES = 5 }; /* the three planes, and two for intermediate steps */

/* Scratch memory of one user; {0} is its first value. */
struct floats {
    struct {
        uint8_t *samples;
        size_t bytes;
    } pieces[FLOATS_PIECES];
};

void floats_fini(struct floats *floats);

/* `rect` is within the frame, and no side is above IMAGE_PIXELS_MAX. Returns BATON_ENOMEM. */
int floats_make(struct floats *floats, const struct camera_frame *frame, const int rect[4],
                const struct float_planes *target, struct baton_error *reterr);

#endif

/* Cuts a frame, scales the cut and converts it to numbers of 0 to 1, which is what models read.
 *
 *   Y, U, V where the decoder put them ─▶ scaled by libyuv (means of boxes) ─▶ red, green, blue
 *
 * The scaled samples stay in the cache; no part of the frame is copied, and of a frame that is at
 * least four times as large as the result every second row is read.
 */
#ifndef DETECTOR_CAMERA_PICTURE_H
#define DETECTOR_CAMERA_PICTURE_H

#include "detector/image.h"

struct picture_target {
    int width, height;
    float *colours[3];       /* where the first pixel's red, green and blue go */
    size_t to_pixel, to_row; /* how many numbers further the next pixel is, and the next row */
};

enum { PICTURE_PIECES = 7 }; /* two for the steps of each of the three planes, and one row */

/* Scratch memory of one user at a time; {0} is its first value. */
struct picture_scaler {
    struct {
        void *memory;
        size_t bytes;
    } pieces[PICTURE_PIECES];
};

void picture_scaler_fini(struct picture_scaler *scaler);

/* `rect` is x, y, width and height within the frame, as image_crop_rect() gives it. The frame's
 * range and matrix are used. Any thread may call it as long as the frame is held. Returns
 * BATON_ENOMEM, or BATON_EINVAL if the rectangle is not within the frame or a side is not 1 to
 * IMAGE_PIXELS_MAX. */
int picture_convert(struct picture_scaler *scaler, const struct frame *frame, const int rect[4],
                    const struct picture_target *target, struct baton_error *reterr);

#endif

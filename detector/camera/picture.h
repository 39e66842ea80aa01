/* Cuts, scales and converts a frame in shared memory to a model's input, in one step. */
#ifndef DETECTOR_CAMERA_PICTURE_H
#define DETECTOR_CAMERA_PICTURE_H

#include "detector/camera/frames.h"

/* The layout of pixels: planar is CHW in terms of networks, the others are HWC. Floats are 0 to 1.
 */
enum pixel_layout {
    PIXELS_RGB,
    PIXELS_BGR,
    PIXELS_RGB_PLANAR,
    PIXELS_BGR_PLANAR,
    PIXELS_RGB_PLANAR_F32,
    PIXELS_BGR_PLANAR_F32,
    PIXEL_LAYOUTS,
};

struct picture_target {
    enum pixel_layout layout;
    int width, height;
    void *pixels;     /* the caller's */
    size_t row_bytes; /* 0: rows follow each other without gaps. A larger value leaves room beside a
                         picture that keeps its proportions within a square */
    size_t plane_bytes; /* of planar layouts only; 0: planes follow each other */
};

/* Returns the bytes of a whole target without gaps. */
size_t picture_bytes(enum pixel_layout layout, int width, int height);

struct picture_scaler; /* opaque: prepared for one pair of sizes; one thread at a time */

struct picture_scaler *picture_scaler_new(void);         /* NULL: out of memory */
void picture_scaler_free(struct picture_scaler *scaler); /* NULL allowed */

/* `rect` is x, y, width and height within the frame, as image_crop_rect() gives it; NULL is the
 * whole frame. A cut copies nothing. The frame's range and matrix are used. Any thread may call it
 * as long as the frame is held. Returns BATON_ENOMEM, or BATON_EINVAL if the rectangle is not
 * within the frame or a side is not 1 to IMAGE_PIXELS_MAX. */
int picture_convert(struct picture_scaler *scaler, const struct camera_frame *frame,
                    const int rect[4], const struct picture_target *target,
                    struct baton_error *reterr);

#endif

/* From a frame in shared memory to what a model reads: cut, scaled and converted in one go. */
#ifndef DETECTOR_CAMERA_PICTURE_H
#define DETECTOR_CAMERA_PICTURE_H

#include "detector/camera/frames.h"

/* How the pixels lie. Planar is what networks call CHW, the others HWC; floats are 0 to 1. */
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
    size_t row_bytes; /* 0: rows follow each other without gaps. More leaves room beside: a picture
                         that keeps its shape within a square */
    size_t plane_bytes; /* 0: planes follow each other; of planar layouts only */
};

/* Bytes of a whole target without gaps. */
size_t picture_bytes(enum pixel_layout layout, int width, int height);

struct picture_scaler; /* opaque: what is prepared for one pair of sizes; one thread at a time */

struct picture_scaler *picture_scaler_new(void);         /* NULL: out of memory */
void picture_scaler_free(struct picture_scaler *scaler); /* NULL allowed */

/* `rect`: x, y, width, height within the frame, as image_crop_rect() gives it; NULL: all of it. The
 * cut is an offset: nothing is copied. Range and matrix of the frame are used. From any thread,
 * as long as the frame is held. BATON_EINVAL: the rectangle is not within the frame, or a side is
 * not 1 to IMAGE_PIXELS_MAX; BATON_ENOMEM. */
int picture_convert(struct picture_scaler *scaler, const struct camera_frame *frame,
                    const int rect[4], const struct picture_target *target,
                    struct baton_error *reterr);

#endif

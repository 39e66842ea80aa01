/* The pictures that a still keeps: image_encoder.c makes them, image.c frees them. */
#ifndef DETECTOR_IMAGE_INT_H
#define DETECTOR_IMAGE_INT_H

#include "base/error.h"
#include "detector/image.h"

#include <uv.h>

/* A still has a list of them, newest first; one that is not made yet holds its still. */
struct encoding {
    struct encoding *next;
    struct encoder *encoder;
    struct still *still;
    struct image_shape shape;
    struct image_boxes boxes;
    bool is_made;
    uv_work_t work;
    /* written by the other thread until it is made */
    uint8_t *jpeg;
    size_t bytes;
    struct baton_error error;
};

/* The encoding is on no list any more. */
void encoding_free(struct encoding *encoding);

#endif

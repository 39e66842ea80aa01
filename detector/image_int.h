/* The pictures that a still keeps: image_encoder.c makes them, image.c frees them. */
#ifndef DETECTOR_IMAGE_INT_H
#define DETECTOR_IMAGE_INT_H

#include "base/error.h"
#include "detector/image.h"

#include <uv.h>

enum encoding_state { ENCODING_QUEUED, ENCODING_UNDER_WAY, ENCODING_MADE };

struct waiter {
    struct waiter *next;
    uint64_t ticket;
};

/* A still has a list of them, newest first; one that is not made yet holds its still. */
struct encoding {
    struct encoding *next;        /* of the still */
    struct encoding *next_queued; /* of the encoder */
    struct encoder *encoder;
    struct still *still;
    struct image_shape shape;
    struct image_boxes *boxes; /* held; NULL: none */
    enum encoding_state state;
    struct waiter *waiters, **last_waiter;
    uv_work_t work;
    /* written by the other thread while it is under way */
    uint8_t *jpeg;
    size_t bytes;
    int code;
    struct baton_error error;
};

/* The encoding is on no list any more. */
void encoding_free(struct encoding *encoding);

#endif

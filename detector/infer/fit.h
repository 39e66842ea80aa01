/* The position of a part of a picture in a model's input, and the way back. Pure.
 *
 * A stretched part fills the input and loses its proportions. A letterboxed part keeps them and
 * lies in the middle, with padding beside it.
 */
#ifndef DETECTOR_INFER_FIT_H
#define DETECTOR_INFER_FIT_H

#include "base/error.h"

#include <stdbool.h>

enum { FIT_SIDE_MAX = 8192 };

struct fit {
    int source[4];     /* of the frame, in its pixels: x, y, width, height */
    int width, height; /* of the input */
    int inner[4];      /* where the source lies in the input: x, y, width, height */
};

/* Returns BATON_EINVAL if a side is not 1 to FIT_SIDE_MAX. */
int fit_init(struct fit *ret, const int source[4], int width, int height, bool is_letterboxed,
             struct baton_error *reterr);

/* Converts a box from the input's pixels to the frame's. */
float fit_source_x(const struct fit *fit, float x);
float fit_source_y(const struct fit *fit, float y);

#endif

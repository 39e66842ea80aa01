#include "detector/infer/fit.h"

#include <stdint.h>
#include <string.h>

static bool is_side(int pixels)
{
    return pixels >= 1 && pixels <= FIT_SIDE_MAX;
}

/* `side` times `inner` / `outer`, to the nearest, at least 1. */
static int scaled(int side, int inner, int outer)
{
    int pixels = (int)(((int64_t)side * inner * 2 + outer) / ((int64_t)outer * 2));

    return pixels > 0 ? pixels : 1;
}

int fit_init(struct fit *ret, const int source[4], int width, int height, bool is_letterboxed,
             struct baton_error *reterr)
{
    int inner_width = width, inner_height = height;

    if (!is_side(source[2]) || !is_side(source[3]) || !is_side(width) || !is_side(height)) {
        return error_set(reterr, BATON_EINVAL,
                         "picture of %dx%d for an input of %dx%d: sides must "
                         "be 1 to %d",
                         source[2], source[3], width, height, FIT_SIDE_MAX);
    }
    if (is_letterboxed) {
        if ((int64_t)width * source[3] <= (int64_t)height * source[2]) {
            inner_height = scaled(source[3], width, source[2]);
        } else {
            inner_width = scaled(source[2], height, source[3]);
        }
    }
    memcpy(ret->source, source, sizeof(ret->source));
    ret->width = width;
    ret->height = height;
    ret->inner[0] = (width - inner_width) / 2;
    ret->inner[1] = (height - inner_height) / 2;
    ret->inner[2] = inner_width;
    ret->inner[3] = inner_height;
    return 0;
}

float fit_source_x(const struct fit *fit, float x)
{
    return (float)fit->source[0] +
           (x - (float)fit->inner[0]) * (float)fit->source[2] / (float)fit->inner[2];
}

float fit_source_y(const struct fit *fit, float y)
{
    return (float)fit->source[1] +
           (y - (float)fit->inner[1]) * (float)fit->source[3] / (float)fit->inner[3];
}

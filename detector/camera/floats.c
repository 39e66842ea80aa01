#include "detector/camera/floats.h"

#include "base/error.h"
#include "detector/camera/colours.h"

#include <libyuv/scale.h>
#include <stdlib.h>

enum { STEP = 4, BOX_MAX = 8 };

struct plane {
    const uint8_t *samples;
    int stride, width, height;
};

void floats_fini(struct floats *floats)
{
    for (int i = 0; i < FLOATS_PIECES; i++) {
        free(floats->pieces[i].samples);
    }
    *floats = (struct floats){0};
}

/* Cuts the rectangle out of the samples. At an odd edge the chroma is shared with the pixel beside
 * it. */
static struct plane cut(const struct frame *frame, int index, const int rect[4])
{
    int shift = index > 0;
    int x = rect[0] >> shift;
    int y = rect[1] >> shift;

    return (struct plane){.samples = frame->plane[index] + (ptrdiff_t)frame->stride[index] * y + x,
                          .stride = frame->stride[index],
                          .width = ((rect[0] + rect[2] - 1) >> shift) - x + 1,
                          .height = ((rect[1] + rect[3] - 1) >> shift) - y + 1};
}

/* Scales into a piece of the scratch memory; false: out of memory. It goes from the last row to the
 * first, which makes the result upside down, and the result's stride undoes that: of a frame larger
 * than the cache the decoder's last rows are still in the cache, and would be lost if the first
 * rows were read first. */
static bool scale_step(struct floats *floats, int piece, struct plane *plane, int width, int height)
{
    size_t bytes = (size_t)width * (size_t)height;
    uint8_t *samples = floats->pieces[piece].samples;

    if (floats->pieces[piece].bytes < bytes) {
        uint8_t *larger = realloc(samples, bytes);
        if (larger == NULL) {
            return false;
        }
        samples = larger;
        floats->pieces[piece].samples = larger;
        floats->pieces[piece].bytes = bytes;
    }
    ScalePlane(plane->samples, plane->stride, plane->width, -plane->height, samples, width, width,
               height, kFilterBox);
    *plane = (struct plane){.samples = samples + (ptrdiff_t)width * (height - 1),
                            .stride = -width,
                            .width = width,
                            .height = height};
    return true;
}

static int quarter(int side, int least)
{
    int pixels = (side + STEP - 1) / STEP;

    return pixels > least ? pixels : least;
}

/* A plane that has the size already stays where it is. The library's mean of a large box is too
 * dark, and of a box higher than 257 rows it is wrong, so large factors are scaled in steps. */
static bool scale(struct floats *floats, int index, struct plane *plane, int width, int height)
{
    bool is_done = true;

    for (int step = 0;
         is_done && (plane->width > BOX_MAX * width || plane->height > BOX_MAX * height); step++) {
        is_done = scale_step(floats, FLOATS_PIECES - 1 - step % 2, plane,
                             quarter(plane->width, width), quarter(plane->height, height));
    }
    return is_done && ((plane->width == width && plane->height == height) ||
                       scale_step(floats, index, plane, width, height));
}

int floats_make(struct floats *floats, const struct camera_frame *frame, const int rect[4],
                const struct float_planes *target, struct baton_error *reterr)
{
    const struct colour_matrix matrix = colour_matrix_of(frame->is_bt709, frame->is_full_range);
    struct plane planes[3];

    for (int i = 0; i < 3; i++) {
        planes[i] = cut(&frame->picture, i, rect);
        if (!scale(floats, i, &planes[i], target->width, target->height)) {
            return error_set(reterr, BATON_ENOMEM, "picture of %dx%d: out of memory", target->width,
                             target->height);
        }
    }
    for (int row = 0; row < target->height; row++) {
        size_t at = (size_t)row * target->stride;
        colours_row(&matrix, planes[0].samples + (ptrdiff_t)planes[0].stride * row,
                    planes[1].samples + (ptrdiff_t)planes[1].stride * row,
                    planes[2].samples + (ptrdiff_t)planes[2].stride * row, target->plane[0] + at,
                    target->plane[1] + at, target->plane[2] + at, (size_t)target->width);
    }
    return 0;
}

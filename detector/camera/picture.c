#include "detector/camera/picture.h"

#include "base/error.h"
#include "detector/camera/colours.h"

#include <libyuv/scale.h>
#include <stdlib.h>

enum { STEP = 4, BOX_MAX = 8, PIECE_OF_STEPS = 3, PIECE_OF_ROW = 5 };

struct plane {
    const uint8_t *samples;
    int stride, width, height;
};

void picture_scaler_fini(struct picture_scaler *scaler)
{
    for (int i = 0; i < PICTURE_PIECES; i++) {
        free(scaler->pieces[i].memory);
    }
    *scaler = (struct picture_scaler){0};
}

/* Returns NULL if memory is short. */
static void *take_piece(struct picture_scaler *scaler, int piece, size_t bytes)
{
    if (scaler->pieces[piece].bytes < bytes) {
        void *larger = realloc(scaler->pieces[piece].memory, bytes);
        if (larger == NULL) {
            return NULL;
        }
        scaler->pieces[piece].memory = larger;
        scaler->pieces[piece].bytes = bytes;
    }
    return scaler->pieces[piece].memory;
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
static bool scale_step(struct picture_scaler *scaler, int piece, struct plane *plane, int width,
                       int height)
{
    uint8_t *samples = take_piece(scaler, piece, (size_t)width * (size_t)height);

    if (samples == NULL) {
        return false;
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
static bool scale(struct picture_scaler *scaler, int index, struct plane *plane, int width,
                  int height)
{
    bool is_done = true;

    for (int step = 0;
         is_done && (plane->width > BOX_MAX * width || plane->height > BOX_MAX * height); step++) {
        is_done = scale_step(scaler, PIECE_OF_STEPS + step % 2, plane, quarter(plane->width, width),
                             quarter(plane->height, height));
    }
    return is_done && ((plane->width == width && plane->height == height) ||
                       scale_step(scaler, index, plane, width, height));
}

/* `line` has room for a row of each colour; it is not used if pixels follow each other. */
static void put_row(const struct picture_target *target, int row,
                    const struct colour_matrix *matrix, const struct plane planes[3], float *line)
{
    size_t width = (size_t)target->width;
    bool is_direct = target->to_pixel == 1;
    const uint8_t *from[3];
    float *to[3];

    for (int i = 0; i < 3; i++) {
        from[i] = planes[i].samples + (ptrdiff_t)planes[i].stride * row;
        to[i] = target->colours[i] + (size_t)row * target->to_row;
    }
    if (is_direct) {
        colours_row(matrix, from[0], from[1], from[2], to[0], to[1], to[2], width);
        return;
    }
    colours_row(matrix, from[0], from[1], from[2], line, line + width, line + 2 * width, width);
    for (int i = 0; i < 3; i++) {
        for (size_t x = 0; x < width; x++) {
            to[i][x * target->to_pixel] = line[(size_t)i * width + x];
        }
    }
}

static int check(const struct frame *frame, const int rect[4], const struct picture_target *target,
                 struct baton_error *reterr)
{
    if (rect[0] < 0 || rect[1] < 0 || rect[2] <= 0 || rect[3] <= 0 ||
        rect[2] > frame->width - rect[0] || rect[3] > frame->height - rect[1]) {
        return error_set(reterr, BATON_EINVAL, "cut of %dx%d at %d,%d: not within %dx%d", rect[2],
                         rect[3], rect[0], rect[1], frame->width, frame->height);
    }
    if (target->width < 1 || target->height < 1 || target->width > IMAGE_PIXELS_MAX ||
        target->height > IMAGE_PIXELS_MAX) {
        return error_set(reterr, BATON_EINVAL, "picture of %dx%d: sides must be 1 to %d",
                         target->width, target->height, IMAGE_PIXELS_MAX);
    }
    return 0;
}

int picture_convert(struct picture_scaler *scaler, const struct camera_frame *frame,
                    const int rect[4], const struct picture_target *target,
                    struct baton_error *reterr)
{
    const struct colour_matrix matrix = colour_matrix_of(frame->is_bt709, frame->is_full_range);
    int rc = check(&frame->picture, rect, target, reterr);
    struct plane planes[3];
    float *line;

    if (rc != 0) {
        return rc;
    }
    line = take_piece(scaler, PIECE_OF_ROW, 3 * (size_t)target->width * sizeof(*line));
    for (int i = 0; i < 3; i++) {
        planes[i] = cut(&frame->picture, i, rect);
        if (line == NULL || !scale(scaler, i, &planes[i], target->width, target->height)) {
            return error_set(reterr, BATON_ENOMEM, "picture of %dx%d: out of memory", target->width,
                             target->height);
        }
    }
    for (int row = 0; row < target->height; row++) {
        put_row(target, row, &matrix, planes, line);
    }
    return 0;
}

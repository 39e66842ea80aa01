#include "detector/camera/floats.h"

#include "base/error.h"

#include <libyuv/scale.h>
#include <stdlib.h>

#define BYTE_MAX 255.0F

enum { STEP = 4, BOX_MAX = 8 };

/* The C library picks what the processor has; with a sanitizer it would be asked too early. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx2", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

/* A colour is luma times `luma`, plus what the two differences add, plus a constant. */
struct matrix {
    float luma;
    float red_v, green_u, green_v, blue_u;
    float red, green, blue;
};

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

/* ITU-R BT.601 and BT.709: the weights of red and blue in luma; and how far samples reach. */
static struct matrix matrix_of(const struct camera_frame *frame)
{
    const float red = frame->is_bt709 ? 0.2126F : 0.299F;
    const float blue = frame->is_bt709 ? 0.0722F : 0.114F;
    const float green = 1 - red - blue;
    const float black = frame->is_full_range ? 0 : 16;
    const float luma = 1 / (frame->is_full_range ? BYTE_MAX : 219);
    const float chroma = 2 / (frame->is_full_range ? BYTE_MAX : 224);
    const float middle = 128;
    struct matrix matrix = {.luma = luma,
                            .red_v = chroma * (1 - red),
                            .green_u = -chroma * (1 - blue) * blue / green,
                            .green_v = -chroma * (1 - red) * red / green,
                            .blue_u = chroma * (1 - blue)};

    matrix.red = -black * luma - middle * matrix.red_v;
    matrix.green = -black * luma - middle * (matrix.green_u + matrix.green_v);
    matrix.blue = -black * luma - middle * matrix.blue_u;
    return matrix;
}

/* The samples under the rectangle. An odd edge takes the chroma that it shares with its neighbour.
 */
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

/* Scaled into a piece of the scratch memory; false: out of memory. */
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
    ScalePlane(plane->samples, plane->stride, plane->width, plane->height, samples, width, width,
               height, kFilterBox);
    *plane = (struct plane){.samples = samples, .stride = width, .width = width, .height = height};
    return true;
}

static int quarter(int side, int least)
{
    int pixels = (side + STEP - 1) / STEP;

    return pixels > least ? pixels : least;
}

/* What has the size already stays where it is. The library's mean of a large box is too dark, and
 * of one that is higher than 257 rows it is wrong: so a long way is gone in steps. */
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

static inline float clamp(float value)
{
    value = value < 0 ? 0 : value;
    return value > 1 ? 1 : value;
}

FOR_EACH_PROCESSOR
static void colour_row(const struct matrix *matrix, const uint8_t *restrict y,
                       const uint8_t *restrict u, const uint8_t *restrict v, float *restrict red,
                       float *restrict green, float *restrict blue, size_t count)
{
    const struct matrix by = *matrix;

    for (size_t i = 0; i < count; i++) {
        float luma = (float)y[i] * by.luma;
        red[i] = clamp(luma + (float)v[i] * by.red_v + by.red);
        green[i] = clamp(luma + (float)u[i] * by.green_u + (float)v[i] * by.green_v + by.green);
        blue[i] = clamp(luma + (float)u[i] * by.blue_u + by.blue);
    }
}

int floats_make(struct floats *floats, const struct camera_frame *frame, const int rect[4],
                const struct float_planes *target, struct baton_error *reterr)
{
    const struct matrix matrix = matrix_of(frame);
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
        colour_row(&matrix, planes[0].samples + (ptrdiff_t)planes[0].stride * row,
                   planes[1].samples + (ptrdiff_t)planes[1].stride * row,
                   planes[2].samples + (ptrdiff_t)planes[2].stride * row, target->plane[0] + at,
                   target->plane[1] + at, target->plane[2] + at, (size_t)target->width);
    }
    return 0;
}

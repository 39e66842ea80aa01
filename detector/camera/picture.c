#include "detector/camera/picture.h"

#include "base/error.h"

#include <libyuv/scale.h>
#include <stdlib.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { PIECE_OF_ROW = 6 };

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
                       int height, enum FilterMode mode)
{
    uint8_t *samples = take_piece(scaler, piece, (size_t)width * (size_t)height);

    if (samples == NULL) {
        return false;
    }
    ScalePlane(plane->samples, plane->stride, plane->width, -plane->height, samples, width, width,
               height, mode);
    *plane = (struct plane){.samples = samples + (ptrdiff_t)width * (height - 1),
                            .stride = -width,
                            .width = width,
                            .height = height};
    return true;
}

/* The library has vector code for sides that are even: an odd last row or column is left out. */
static bool halve(struct picture_scaler *scaler, int piece, struct plane *plane, bool is_wide,
                  bool is_high, enum FilterMode mode)
{
    plane->width -= is_wide ? plane->width % 2 : 0;
    plane->height -= is_high ? plane->height % 2 : 0;
    return scale_step(scaler, piece, plane, plane->width >> is_wide, plane->height >> is_high,
                      mode);
}

/* Whether the plane is more than twice as large in both directions, by factors that are not whole:
 * the library makes the means of such boxes slowly, and of whole pixels only. */
static bool is_uneven(const struct plane *plane, int width, int height)
{
    return plane->width > 2 * width && plane->height > 2 * height &&
           (plane->width % width != 0 || plane->height % height != 0);
}

/* A plane that has the size already stays where it is, and the others become means of boxes. Of a
 * picture that is at least four times too large in a direction every second row is read: reading is
 * most of the cost, and the means are still of twice as many pixels as bilinear scaling takes. It
 * is halved first, since the library makes the means of large boxes slowly, and too dark. */
static bool scale(struct picture_scaler *scaler, int index, struct plane *plane, int width,
                  int height)
{
    int many = index > 0 ? 2 : 4; /* a colour's samples are half as dense */
    bool is_done = true;

    for (int step = 0; is_done && (plane->width != width || plane->height != height); step++) {
        bool is_wide = plane->width >= many * width;
        bool is_high = plane->height >= many * height;
        bool skips = step == 0 && (is_wide || is_high);
        bool is_both = is_uneven(plane, width, height);
        int piece = 2 * index + step % 2;
        is_done = is_wide || is_high || is_both
                      ? halve(scaler, piece, plane, is_wide || is_both, is_high || is_both,
                              skips ? kFilterLinear : kFilterBox)
                      : scale_step(scaler, piece, plane, width, height, kFilterBox);
    }
    return is_done;
}

/* ---- colours ---- */

/* A colour is the sum of luma times `luma`, its shares of the two differences, and a constant. */
struct colour_matrix {
    float luma;
    float red_v, green_u, green_v, blue_u;
    float red, green, blue;
};

/* Returns the matrix of ITU-R BT.709 or BT.601, for samples of 0 to 255, or of 16 to 235 and 240.
 */
static struct colour_matrix colour_matrix_of(bool is_bt709, bool is_full_range)
{
    /* The weights of red and blue in luma, and the range of samples. */
    const float red = is_bt709 ? 0.2126F : 0.299F;
    const float blue = is_bt709 ? 0.0722F : 0.114F;
    const float green = 1 - red - blue;
    const float black = is_full_range ? 0 : 16;
    const float luma = 1 / (is_full_range ? 255.0F : 219.0F);
    const float chroma = 2 / (is_full_range ? 255.0F : 224.0F);
    const float middle = 128;
    struct colour_matrix matrix = {.luma = luma,
                                   .red_v = chroma * (1 - red),
                                   .green_u = -chroma * (1 - blue) * blue / green,
                                   .green_v = -chroma * (1 - red) * red / green,
                                   .blue_u = chroma * (1 - blue)};

    matrix.red = -black * luma - middle * matrix.red_v;
    matrix.green = -black * luma - middle * (matrix.green_u + matrix.green_v);
    matrix.blue = -black * luma - middle * matrix.blue_u;
    return matrix;
}

#if defined(__x86_64__)

enum { LANES = 8 };

__attribute__((target("avx2,fma"))) static inline __m256 load(const uint8_t *samples)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadu_si64(samples)));
}

__attribute__((target("avx2,fma"))) static inline void store(float *values, __m256 colour)
{
    colour = _mm256_max_ps(colour, _mm256_setzero_ps());
    _mm256_storeu_ps(values, _mm256_min_ps(colour, _mm256_set1_ps(1)));
}

/* Compilers vectorize this loop, too, but their code takes more than twice as long: it widens the
 * samples in many steps, to use more lanes than the rest of the loop has. Returns the number of
 * samples that were converted: all but the last few. */
__attribute__((target("avx2,fma"))) static size_t
vector_row(const struct colour_matrix *matrix, const uint8_t *restrict y, const uint8_t *restrict u,
           const uint8_t *restrict v, float *restrict red, float *restrict green,
           float *restrict blue, size_t count)
{
    const struct colour_matrix by = *matrix;
    size_t done = 0;

    for (; count - done >= LANES; done += LANES) {
        __m256 luma = load(y + done) * by.luma;
        __m256 blueish = load(u + done);
        __m256 reddish = load(v + done);
        store(red + done, luma + (reddish * by.red_v + by.red));
        store(green + done, luma + (blueish * by.green_u + (reddish * by.green_v + by.green)));
        store(blue + done, luma + (blueish * by.blue_u + by.blue));
    }
    return done;
}

#endif

static inline float clamp(float value)
{
    value = value < 0 ? 0 : value;
    return value > 1 ? 1 : value;
}

/* Converts `count` samples of each of y, u and v. With AVX2, where the processor has it, results
 * differ in the last bits only. */
static void convert_row(const struct colour_matrix *matrix, const uint8_t *restrict y,
                        const uint8_t *restrict u, const uint8_t *restrict v, float *restrict red,
                        float *restrict green, float *restrict blue, size_t count)
{
    const struct colour_matrix by = *matrix;
    size_t i = 0;

#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        i = vector_row(matrix, y, u, v, red, green, blue, count);
    }
#endif
    for (; i < count; i++) {
        float luma = (float)y[i] * by.luma;
        red[i] = clamp(luma + (float)v[i] * by.red_v + by.red);
        green[i] = clamp(luma + (float)u[i] * by.green_u + (float)v[i] * by.green_v + by.green);
        blue[i] = clamp(luma + (float)u[i] * by.blue_u + by.blue);
    }
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
        convert_row(matrix, from[0], from[1], from[2], to[0], to[1], to[2], width);
        return;
    }
    convert_row(matrix, from[0], from[1], from[2], line, line + width, line + 2 * width, width);
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

int picture_convert(struct picture_scaler *scaler, const struct frame *frame, const int rect[4],
                    const struct picture_target *target, struct baton_error *reterr)
{
    const struct colour_matrix matrix = colour_matrix_of(frame->is_bt709, frame->is_full_range);
    int rc = check(frame, rect, target, reterr);
    struct plane planes[3];
    float *line;

    if (rc != 0) {
        return rc;
    }
    line = take_piece(scaler, PIECE_OF_ROW, 3 * (size_t)target->width * sizeof(*line));
    for (int i = 0; i < 3; i++) {
        planes[i] = cut(frame, i, rect);
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

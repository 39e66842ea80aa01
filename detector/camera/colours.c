#include "detector/camera/colours.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

struct colour_matrix colour_matrix_of(bool is_bt709, bool is_full_range)
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
    const __m256 by_luma = _mm256_set1_ps(matrix->luma);
    const __m256 red_v = _mm256_set1_ps(matrix->red_v);
    const __m256 green_u = _mm256_set1_ps(matrix->green_u);
    const __m256 green_v = _mm256_set1_ps(matrix->green_v);
    const __m256 blue_u = _mm256_set1_ps(matrix->blue_u);
    const __m256 no_red = _mm256_set1_ps(matrix->red);
    const __m256 no_green = _mm256_set1_ps(matrix->green);
    const __m256 no_blue = _mm256_set1_ps(matrix->blue);
    size_t done = 0;

    for (; count - done >= LANES; done += LANES) {
        __m256 luma = _mm256_mul_ps(load(y + done), by_luma);
        __m256 blueish = load(u + done);
        __m256 reddish = load(v + done);
        __m256 green_less = _mm256_fmadd_ps(reddish, green_v, no_green);
        green_less = _mm256_fmadd_ps(blueish, green_u, green_less);
        store(red + done, _mm256_add_ps(luma, _mm256_fmadd_ps(reddish, red_v, no_red)));
        store(green + done, _mm256_add_ps(luma, green_less));
        store(blue + done, _mm256_add_ps(luma, _mm256_fmadd_ps(blueish, blue_u, no_blue)));
    }
    return done;
}

static bool has_vectors(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

#endif

static inline float clamp(float value)
{
    value = value < 0 ? 0 : value;
    return value > 1 ? 1 : value;
}

void colours_row(const struct colour_matrix *matrix, const uint8_t *restrict y,
                 const uint8_t *restrict u, const uint8_t *restrict v, float *restrict red,
                 float *restrict green, float *restrict blue, size_t count)
{
    const struct colour_matrix by = *matrix;
    size_t i = 0;

#if defined(__x86_64__)
    if (has_vectors()) {
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

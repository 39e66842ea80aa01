/* Samples of luma and the two colour differences to red, green and blue of 0 to 1, a row at a time.
 * Inside of picture.h's folder only.
 */
#ifndef DETECTOR_CAMERA_COLOURS_H
#define DETECTOR_CAMERA_COLOURS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A colour is luma times `luma`, plus what the two differences add, plus a constant. */
struct colour_matrix {
    float luma;
    float red_v, green_u, green_v, blue_u;
    float red, green, blue;
};

/* ITU-R BT.709, or else BT.601; samples of 0 to 255, or else of 16 to 235 and 240. */
struct colour_matrix colour_matrix_of(bool is_bt709, bool is_full_range);

/* `count` samples of each of y, u and v to as many numbers of each colour; by AVX2 where the
 * processor has it, which differs from the plain way in the last bits only. */
void colours_row(const struct colour_matrix *matrix, const uint8_t *restrict y,
                 const uint8_t *restrict u, const uint8_t *restrict v, float *restrict red,
                 float *restrict green, float *restrict blue, size_t count);

#endif

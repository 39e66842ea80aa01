/* Converts samples of luma and the two colour differences to red, green and blue of 0 to 1, one row
 * at a time. Only picture.h's folder includes this header.
 */
#ifndef DETECTOR_CAMERA_COLOURS_H
#define DETECTOR_CAMERA_COLOURS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A colour is the sum of luma times `luma`, its shares of the two differences, and a constant. */
struct colour_matrix {
    float luma;
    float red_v, green_u, green_v, blue_u;
    float red, green, blue;
};

/* Returns the matrix of ITU-R BT.709 or BT.601, for samples of 0 to 255, or of 16 to 235 and 240.
 */
struct colour_matrix colour_matrix_of(bool is_bt709, bool is_full_range);

/* Converts `count` samples of each of y, u and v. With AVX2, where the processor has it, results
 * differ in the last bits only. */
void colours_row(const struct colour_matrix *matrix, const uint8_t *restrict y,
                 const uint8_t *restrict u, const uint8_t *restrict v, float *restrict red,
                 float *restrict green, float *restrict blue, size_t count);

#endif

#include "cmocka_all.h"

#include "colour_formula.h"
#include "detector/camera/colours.h"

#include <math.h>

enum { SAMPLES = 256, FEW = 7 /* too few for vectors: the plain way */ };

/* Every luma beside every pair of differences that is a multiple of five, in every matrix and
 * range, many at once and few at once: what a processor's vectors do is what the plain loop does.
 */
static void every_sample_is_the_standards_colour_in_a_long_row_and_in_a_short_one(void **state)
{
    uint8_t y[SAMPLES], u[SAMPLES], v[SAMPLES];
    float values[3][SAMPLES];
    double wanted[3], worst = 0;

    (void)state;
    for (int i = 0; i < 4 * 52 * 52; i++) {
        bool is_bt709 = i % 2;
        bool is_full_range = i / 2 % 2;
        const struct colour_matrix matrix = colour_matrix_of(is_bt709, is_full_range);
        size_t step = i / 4 % 5 == 0 ? FEW : SAMPLES;

        for (int k = 0; k < SAMPLES; k++) {
            y[k] = (uint8_t)k;
            u[k] = (uint8_t)(i / 4 % 52 * 5);
            v[k] = (uint8_t)(i / 4 / 52 * 5);
        }
        for (size_t at = 0; at < SAMPLES; at += step) {
            size_t count = SAMPLES - at < step ? SAMPLES - at : step;
            colours_row(&matrix, y + at, u + at, v + at, values[0] + at, values[1] + at,
                        values[2] + at, count);
        }
        for (int k = 0; k < SAMPLES; k++) {
            colour_formula(wanted, is_bt709, is_full_range, (const double[]){y[k], u[k], v[k]});
            for (int colour = 0; colour < 3; colour++) {
                worst = fmax(worst, fabs((double)values[colour][k] - wanted[colour]));
            }
        }
    }
    assert_true(worst < 1e-6);
}

static void a_row_of_any_length_is_written_to_its_end_and_not_past_it(void **state)
{
    const struct colour_matrix matrix = colour_matrix_of(true, true);
    uint8_t samples[SAMPLES];
    float values[3][SAMPLES];

    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        samples[i] = (uint8_t)i;
    }
    for (size_t count = 0; count < 40; count++) {
        for (int i = 0; i < SAMPLES; i++) {
            values[0][i] = values[1][i] = values[2][i] = 7;
        }
        colours_row(&matrix, samples, samples + 1, samples + 2, values[0], values[1], values[2],
                    count);
        for (int colour = 0; colour < 3; colour++) {
            for (size_t i = 0; i < SAMPLES; i++) {
                assert_int_equal(i < count, values[colour][i] <= 1);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sample_is_the_standards_colour_in_a_long_row_and_in_a_short_one),
        cmocka_unit_test(a_row_of_any_length_is_written_to_its_end_and_not_past_it),
    };
    return cmocka_run_group_tests_name("unit_detector_camera_colours", tests, NULL, NULL);
}

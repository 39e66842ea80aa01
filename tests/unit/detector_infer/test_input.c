#include "cmocka_all.h"

#include "detector/infer/input.h"

#include <string.h>

enum { WIDTH = 64, HEIGHT = 32, SIDE = 32, NUMBERS = 3 * SIDE * SIDE, INNER_TOP = 8 };

/* Orange, in BT.601 of 16 to 235, and what it is as RGB of 0 to 1. */
static const uint8_t orange[3] = {140, 60, 190};
static const float rgb[3] = {0.954F, 0.473F, 0.028F};
static const float tolerance = 0.02F;
static const float grey = 114.0F / 255;

static uint8_t memory[WIDTH * HEIGHT * 3 / 2];
static float values[NUMBERS];
static struct picture_scaler scaler;

static struct frame orange_frame(void)
{
    struct frame frame = {
        .width = WIDTH,
        .height = HEIGHT,
        .stride = {WIDTH, WIDTH / 2, WIDTH / 2},
        .plane = {memory, memory + WIDTH * HEIGHT, memory + WIDTH * HEIGHT * 5 / 4}};

    memset(memory, orange[0], WIDTH * HEIGHT);
    memset(memory + WIDTH * HEIGHT, orange[1], WIDTH * HEIGHT / 4);
    memset(memory + WIDTH * HEIGHT * 5 / 4, orange[2], WIDTH * HEIGHT / 4);
    return frame;
}

static const struct pipeline_input plain = {.width = SIDE,
                                            .height = SIDE,
                                            .layout = LAYOUT_NCHW,
                                            .color = COLOR_RGB,
                                            .scale = 1.0F / 255,
                                            .std = {1, 1, 1}};

static struct fit make(const struct pipeline_input *input, const int rect[4])
{
    const int whole[4] = {0, 0, WIDTH, HEIGHT};
    struct frame frame = orange_frame();
    struct baton_error error = {0};
    struct fit fit = {0};

    for (int i = 0; i < NUMBERS; i++) {
        values[i] = -99;
    }
    if (input_make(&scaler, input, &frame, rect ? rect : whole, values, &fit, &error) != 0) {
        fail_msg("%s", error.message);
    }
    return fit;
}

static float at(const struct pipeline_input *input, int channel, int x, int y)
{
    int pixel = y * SIDE + x;

    return values[input->layout == LAYOUT_NCHW ? channel * SIDE * SIDE + pixel
                                               : pixel * 3 + channel];
}

static void layout_and_order_are_as_asked(void **state)
{
    for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
        for (int color = 0; color < COLOR_COUNT; color++) {
            struct pipeline_input input = plain;
            input.layout = (enum pipeline_layout)layout;
            input.color = (enum pipeline_color)color;
            (void)make(&input, NULL);
            for (int channel = 0; channel < 3; channel++) {
                float wanted = rgb[color == COLOR_RGB ? channel : 2 - channel];
                assert_float_equal(at(&input, channel, 0, 0), wanted, tolerance);
                assert_float_equal(at(&input, channel, SIDE - 1, SIDE - 1), wanted, tolerance);
            }
        }
    }
}

static void a_letterbox_is_padded_with_grey(void **state)
{
    for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
        struct pipeline_input input = plain;
        struct fit fit;
        input.layout = (enum pipeline_layout)layout;
        input.is_letterboxed = true;
        fit = make(&input, NULL);
        assert_int_equal(fit.inner[1], INNER_TOP);
        for (int channel = 0; channel < 3; channel++) {
            assert_float_equal(at(&input, channel, 0, 0), grey, 1e-6);
            assert_float_equal(at(&input, channel, 5, INNER_TOP - 1), grey, 1e-6);
            assert_float_equal(at(&input, channel, 0, INNER_TOP), rgb[channel], tolerance);
            assert_float_equal(at(&input, channel, SIDE - 1, SIDE - INNER_TOP - 1), rgb[channel],
                               tolerance);
            assert_float_equal(at(&input, channel, 0, SIDE - INNER_TOP), grey, 1e-6);
        }
        for (int i = 0; i < NUMBERS; i++) {
            assert_true(values[i] >= 0); /* every number was written */
        }
        (void)make(&input, (int[]){0, 0, 8, 32});
        assert_float_equal(at(&input, 0, 11, 16), grey, 1e-6);
        assert_float_equal(at(&input, 0, 12, 16), rgb[0], tolerance);
        assert_float_equal(at(&input, 0, 19, 16), rgb[0], tolerance);
        assert_float_equal(at(&input, 0, 20, 16), grey, 1e-6);
    }
}

static void numbers_are_scaled_as_asked(void **state)
{
    for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
        struct pipeline_input input = plain;
        input.layout = (enum pipeline_layout)layout;
        input.is_letterboxed = true;
        input.scale = 1;
        for (int channel = 0; channel < 3; channel++) {
            input.mean[channel] = 100.0F + (float)channel;
            input.std[channel] = 50.0F - (float)channel;
        }
        (void)make(&input, NULL);
        for (int channel = 0; channel < 3; channel++) {
            assert_float_equal(at(&input, channel, 9, 16),
                               (rgb[channel] * 255 - input.mean[channel]) / input.std[channel],
                               tolerance * 255 / 40);
            assert_float_equal(at(&input, channel, 0, 0),
                               (114 - input.mean[channel]) / input.std[channel], 1e-4);
        }
    }
}

static void a_cut_outside_of_the_frame_is_refused(void **state)
{
    struct frame frame = orange_frame();
    struct baton_error error;
    struct fit fit;

    assert_int_equal(
        input_make(&scaler, &plain, &frame, (int[]){60, 0, 8, 8}, values, &fit, &error),
        BATON_EINVAL);
}

static int tear_down(void **state)
{
    picture_scaler_fini(&scaler);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout_and_order_are_as_asked),
        cmocka_unit_test(a_letterbox_is_padded_with_grey),
        cmocka_unit_test(numbers_are_scaled_as_asked),
        cmocka_unit_test(a_cut_outside_of_the_frame_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, tear_down);
}

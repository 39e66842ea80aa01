#include "cmocka_all.h"

#include "detector/camera/picture.h"

#include <stdlib.h>
#include <string.h>

enum { WIDTH = 160, HEIGHT = 120 };

static uint8_t luma[WIDTH * HEIGHT], blue[WIDTH * HEIGHT / 4], red[WIDTH * HEIGHT / 4];

/* Red on the left, grey on the right, by BT.601 with limited range. */
static struct camera_frame paint(void)
{
    struct camera_frame frame = {.picture = {.width = WIDTH,
                                             .height = HEIGHT,
                                             .stride = {WIDTH, WIDTH / 2, WIDTH / 2},
                                             .plane = {luma, blue, red}}};

    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        luma[i] = i % WIDTH < WIDTH / 2 ? 81 : 126;
    }
    for (int i = 0; i < WIDTH * HEIGHT / 4; i++) {
        bool is_left = i % (WIDTH / 2) < WIDTH / 4;
        blue[i] = is_left ? 90 : 128;
        red[i] = is_left ? 240 : 128;
    }
    return frame;
}

static void assert_near(double value, double wanted)
{
    if (value < wanted - 3 || value > wanted + 3) {
        fail_msg("%f is not %f", value, wanted);
    }
}

/* The sample of a channel (0 red … 2 blue) of the target at x, y, as 0 to 255. */
static double sample(const struct picture_target *target, int channel, int x, int y)
{
    const uint8_t *bytes = target->pixels;
    size_t at = (size_t)(y * target->width + x);
    size_t plane = (size_t)(target->width * target->height);
    float value;

    switch (target->layout) {
    case PIXELS_RGB:
        return bytes[at * 3 + (size_t)channel];
    case PIXELS_BGR:
        return bytes[at * 3 + 2 - (size_t)channel];
    case PIXELS_RGB_PLANAR:
        return bytes[plane * (size_t)channel + at];
    case PIXELS_BGR_PLANAR:
        return bytes[plane * (2 - (size_t)channel) + at];
    default:
        channel = target->layout == PIXELS_RGB_PLANAR_F32 ? channel : 2 - channel;
        memcpy(&value, bytes + (plane * (size_t)channel + at) * sizeof(value), sizeof(value));
        return (double)value * 255;
    }
}

static void each_layout_has_the_colours_where_it_says(void **state)
{
    struct picture_scaler *scaler = picture_scaler_new();
    struct camera_frame frame = paint();

    (void)state;
    for (int layout = 0; layout < PIXEL_LAYOUTS; layout++) {
        struct picture_target target = {
            .layout = (enum pixel_layout)layout, .width = 64, .height = 64};
        target.pixels = malloc(picture_bytes(target.layout, 64, 64));
        assert_int_equal(picture_convert(scaler, &frame, NULL, &target, NULL), 0);
        assert_near(sample(&target, 0, 5, 60), 254);
        assert_near(sample(&target, 1, 5, 60), 0);
        assert_near(sample(&target, 2, 5, 60), 0);
        for (int channel = 0; channel < 3; channel++) {
            assert_near(sample(&target, channel, 60, 3), 128);
        }
        free(target.pixels);
    }
    picture_scaler_free(scaler);
}

static void a_cut_shows_only_what_is_in_it(void **state)
{
    struct picture_scaler *scaler = picture_scaler_new();
    struct camera_frame frame = paint();
    const int right[4] = {WIDTH / 2, 10, WIDTH / 2, 50};
    uint8_t pixels[32 * 32 * 3];
    struct picture_target target = {PIXELS_RGB, 32, 32, pixels, 0, 0};

    (void)state;
    assert_int_equal(picture_convert(scaler, &frame, right, &target, NULL), 0);
    for (int x = 0; x < 32; x++) {
        assert_near(sample(&target, 0, x, 0), 128);
        assert_near(sample(&target, 1, x, 31), 128);
    }
    picture_scaler_free(scaler);
}

static void full_range_and_the_other_matrix_are_heeded(void **state)
{
    struct picture_scaler *scaler = picture_scaler_new();
    struct camera_frame frame = paint();
    uint8_t pixels[16 * 16 * 3];
    struct picture_target target = {PIXELS_RGB, 16, 16, pixels, 0, 0};
    double limited;

    (void)state;
    assert_int_equal(picture_convert(scaler, &frame, NULL, &target, NULL), 0);
    limited = sample(&target, 1, 2, 2);
    frame.is_full_range = true;
    assert_int_equal(picture_convert(scaler, &frame, NULL, &target, NULL), 0);
    assert_near(sample(&target, 0, 14, 2), 126);
    frame.is_full_range = false;
    frame.is_bt709 = true;
    assert_int_equal(picture_convert(scaler, &frame, NULL, &target, NULL), 0);
    assert_true(sample(&target, 1, 2, 2) > limited + 10);
    picture_scaler_free(scaler);
}

static void rows_may_leave_room_and_nothing_else_is_written(void **state)
{
    struct picture_scaler *scaler = picture_scaler_new();
    struct camera_frame frame = paint();
    uint8_t pixels[3 * 40 * 24];

    (void)state;
    for (int width = 20; width < 40; width++) {
        struct picture_target target = {PIXELS_RGB_PLANAR, width, 24, pixels, 40, 40 * 24};
        memset(pixels, 77, sizeof(pixels));
        assert_int_equal(picture_convert(scaler, &frame, NULL, &target, NULL), 0);
        for (size_t row = 0; row < 3 * 24; row++) {
            for (size_t x = (size_t)width; x < 40; x++) {
                assert_int_equal(pixels[row * 40 + x], 77);
            }
        }
    }
    picture_scaler_free(scaler);
}

/* The library's vector code likes to write whole vectors. */
static void nothing_is_written_past_the_end_whatever_the_size(void **state)
{
    struct picture_scaler *scaler = picture_scaler_new();
    struct camera_frame frame = paint();
    enum { GUARD = 256 };

    (void)state;
    for (int layout = 0; layout < PIXEL_LAYOUTS; layout++) {
        for (int width = 1; width < 70; width++) {
            size_t bytes = picture_bytes((enum pixel_layout)layout, width, 9);
            uint8_t *pixels = malloc(bytes + GUARD);
            struct picture_target target = {(enum pixel_layout)layout, width, 9, pixels, 0, 0};
            assert_non_null(pixels);
            memset(pixels, 77, bytes + GUARD);
            assert_int_equal(picture_convert(scaler, &frame, NULL, &target, NULL), 0);
            for (size_t i = 0; i < GUARD; i++) {
                if (pixels[bytes + i] != 77) {
                    fail_msg("layout %d, width %d: byte %zu past the end", layout, width, i);
                }
            }
            free(pixels);
        }
    }
    picture_scaler_free(scaler);
}

static void a_cut_outside_or_a_size_beyond_is_refused(void **state)
{
    static const int cuts[][4] = {{-1, 0, 10, 10},   {0, 0, WIDTH + 1, 10},
                                  {0, 0, 0, 10},     {WIDTH - 5, 0, 6, 10},
                                  {0, HEIGHT, 1, 1}, {10, 10, 2147483647, 4}};
    struct picture_scaler *scaler = picture_scaler_new();
    struct camera_frame frame = paint();
    uint8_t pixels[16 * 16 * 3];
    struct picture_target target = {PIXELS_RGB, 16, 16, pixels, 0, 0};

    (void)state;
    for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        assert_int_equal(picture_convert(scaler, &frame, cuts[i], &target, NULL), BATON_EINVAL);
    }
    target.width = IMAGE_PIXELS_MAX + 1;
    assert_int_equal(picture_convert(scaler, &frame, NULL, &target, NULL), BATON_EINVAL);
    target.width = 0;
    assert_int_equal(picture_convert(scaler, &frame, NULL, &target, NULL), BATON_EINVAL);
    picture_scaler_free(scaler);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_layout_has_the_colours_where_it_says),
        cmocka_unit_test(a_cut_shows_only_what_is_in_it),
        cmocka_unit_test(full_range_and_the_other_matrix_are_heeded),
        cmocka_unit_test(rows_may_leave_room_and_nothing_else_is_written),
        cmocka_unit_test(nothing_is_written_past_the_end_whatever_the_size),
        cmocka_unit_test(a_cut_outside_or_a_size_beyond_is_refused),
    };
    return cmocka_run_group_tests_name("unit_detector_camera_picture", tests, NULL, NULL);
}

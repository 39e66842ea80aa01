#include "cmocka_all.h"

#include "detector/camera/motion.h"

#include <string.h>

enum { WIDTH = 322, HEIGHT = 241, STRIDE = 384 };

static uint8_t luma[STRIDE * HEIGHT];

static struct frame picture(void)
{
    return (struct frame){.width = WIDTH, .height = HEIGHT, .stride = {STRIDE}, .plane = {luma}};
}

static void paint(int x, int y, int width, int height, uint8_t value)
{
    for (int row = y; row < y + height; row++) {
        memset(luma + row * STRIDE + x, value, (size_t)width);
    }
}

static void the_first_picture_of_a_size_has_moved_and_the_same_again_has_not(void **state)
{
    struct motion motion = {0};
    struct frame frame = picture();

    paint(0, 0, WIDTH, HEIGHT, 64);
    assert_int_equal(motion_measure(&motion, &frame), 1000);
    assert_int_equal(motion_measure(&motion, &frame), 0);
    frame.width = 2;
    frame.height = 1;
    assert_int_equal(motion_measure(&motion, &frame), 1000);
    assert_int_equal(motion_measure(&motion, &frame), 0);
}

static void the_share_is_that_of_what_moved(void **state)
{
    struct motion motion = {0};
    struct frame frame = picture();

    paint(0, 0, WIDTH, HEIGHT, 64);
    (void)motion_measure(&motion, &frame);
    paint(0, 0, WIDTH, HEIGHT / 4, 200);
    assert_in_range(motion_measure(&motion, &frame), 230, 270);
}

static void noise_is_no_motion(void **state)
{
    struct motion motion = {0};
    struct frame frame = picture();
    uint32_t seed = 1;

    for (int i = 0; i < 20; i++) {
        int moved;
        for (size_t at = 0; at < sizeof(luma); at++) {
            seed = seed * 1664525 + 1013904223;
            luma[at] = (uint8_t)(100 + (seed >> 24) % 17);
        }
        moved = motion_measure(&motion, &frame);
        assert_true(i == 0 || moved == 0);
    }
}

static void dusk_is_no_motion_and_a_parked_car_stops_being_one(void **state)
{
    struct motion motion = {0};
    struct frame frame = picture();
    int frames = 0;

    paint(0, 0, WIDTH, HEIGHT, 200);
    (void)motion_measure(&motion, &frame);
    for (int i = 0; i < 600; i++) {
        paint(0, 0, WIDTH, HEIGHT, (uint8_t)(200 - i / 6));
        assert_int_equal(motion_measure(&motion, &frame), 0);
    }
    paint(100, 100, 100, 60, 250);
    assert_true(motion_measure(&motion, &frame) > 50);
    while (motion_measure(&motion, &frame) > 0) {
        assert_true(++frames < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_picture_of_a_size_has_moved_and_the_same_again_has_not),
        cmocka_unit_test(the_share_is_that_of_what_moved),
        cmocka_unit_test(noise_is_no_motion),
        cmocka_unit_test(dusk_is_no_motion_and_a_parked_car_stops_being_one),
    };
    return cmocka_run_group_tests_name("unit_detector_camera_motion", tests, NULL, NULL);
}

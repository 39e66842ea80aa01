#include "cmocka_all.h"
#include "detector/image.h"

#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

enum { WIDTH = 64, HEIGHT = 48, STRIDE = 80 };

/* Left half dark, right half bright; rows longer than the picture. */
static const struct frame *a_frame(void)
{
    static uint8_t luma[STRIDE * HEIGHT];
    static uint8_t chroma[STRIDE * HEIGHT];
    static const struct frame frame = {.width = WIDTH,
                                       .height = HEIGHT,
                                       .stride = {STRIDE, STRIDE, STRIDE},
                                       .plane = {luma, chroma, chroma}};
    memset(luma, 255, sizeof(luma));
    memset(chroma, 128, sizeof(chroma));
    for (int y = 0; y < HEIGHT; y++) {
        memset(luma + (ptrdiff_t)STRIDE * y, 30, WIDTH / 2);
        memset(luma + (ptrdiff_t)STRIDE * y + WIDTH / 2, 220, WIDTH / 2);
    }
    return &frame;
}

static int set_up(void **state)
{
    *state = image_store_new(2);
    return *state == NULL;
}

static int tear_down(void **state)
{
    image_store_free(*state);
    return 0;
}

/* Grey pixels of the JPEG, for free(). */
static uint8_t *decode(const struct image *image)
{
    tjhandle decompressor = tjInitDecompress();
    int width;
    int height;
    int sampling;
    int space;
    uint8_t *grey;

    assert_int_equal(tjDecompressHeader3(decompressor, image->jpeg, image->bytes, &width, &height,
                                         &sampling, &space),
                     0);
    assert_int_equal(width, image->width);
    assert_int_equal(height, image->height);
    grey = malloc((size_t)width * (size_t)height);
    assert_int_equal(tjDecompress2(decompressor, image->jpeg, image->bytes, grey, width, width,
                                   height, TJPF_GRAY, 0),
                     0);
    (void)tjDestroy(decompressor);
    return grey;
}

static void a_frame_comes_back_as_jpeg(void **state)
{
    struct image image;
    uint8_t *grey;

    assert_int_equal(image_put(*state, "d;c", a_frame(), NULL), 0);
    assert_int_equal(image_jpeg(*state, "d;c", NULL, &image, NULL), 0);
    assert_int_equal(image.width, WIDTH);
    grey = decode(&image);
    assert_in_range(grey[10 * WIDTH + 5], 25, 35);
    assert_in_range(grey[10 * WIDTH + 60], 215, 225);
    free(grey);
}

static void a_crop_is_cut_out_of_the_planes(void **state)
{
    struct crop crop = {.given = 0xf, .at = {32, 10, 64, 30}};
    struct image image;
    uint8_t *grey;

    assert_int_equal(image_put(*state, "d;c", a_frame(), NULL), 0);
    assert_int_equal(image_jpeg(*state, "d;c", &crop, &image, NULL), 0);
    assert_int_equal(image.width, 32);
    assert_int_equal(image.height, 20);
    grey = decode(&image);
    assert_in_range(grey[0], 215, 225);
    assert_in_range(grey[32 * 20 - 1], 215, 225);
    free(grey);
}

static void a_jpeg_is_made_once_for_a_frame(void **state)
{
    struct image first;
    struct image second;

    assert_int_equal(image_put(*state, "d;c", a_frame(), NULL), 0);
    assert_int_equal(image_jpeg(*state, "d;c", NULL, &first, NULL), 0);
    assert_int_equal(image_jpeg(*state, "d;c", NULL, &second, NULL), 0);
    assert_ptr_equal(first.jpeg, second.jpeg);
    assert_true(first.number == second.number);
    assert_int_equal(image_put(*state, "d;c", a_frame(), NULL), 0);
    assert_int_equal(image_jpeg(*state, "d;c", NULL, &second, NULL), 0);
    assert_true(second.number > first.number);
}

static void frames_are_kept_apart_bounded_and_forgotten(void **state)
{
    struct image image;
    struct baton_error error = {0};
    struct frame odd = *a_frame();
    struct frame huge = *a_frame();

    assert_int_equal(image_jpeg(*state, "d;c", NULL, &image, &error), BATON_ENOENT);
    odd.width = 33;
    odd.height = 17;
    assert_int_equal(image_put(*state, "a;1", a_frame(), NULL), 0);
    assert_int_equal(image_put(*state, "a;2", &odd, NULL), 0);
    assert_int_equal(image_put(*state, "a;3", a_frame(), &error), BATON_EFULL);
    assert_int_equal(image_jpeg(*state, "a;2", NULL, &image, NULL), 0);
    assert_int_equal(image.width, 33);
    assert_int_equal(image.height, 17);
    free(decode(&image));
    image_remove(*state, "a;1");
    image_remove(*state, "a;1");
    assert_int_equal(image_jpeg(*state, "a;1", NULL, &image, NULL), BATON_ENOENT);
    assert_int_equal(image_jpeg(*state, "a;2", NULL, &image, NULL), 0);
    huge.width = IMAGE_PIXELS_MAX + 1;
    assert_int_equal(image_put(*state, "a;1", &huge, &error), BATON_EINVAL);
    huge.width = 0;
    assert_int_equal(image_put(*state, "a;1", &huge, &error), BATON_EINVAL);
}

static void a_crop_is_moved_into_the_frame_and_stays_even(void **state)
{
    static const struct {
        struct crop crop;
        int width, height;
        int rect[4];
    } cases[] = {
        {{0, {0}}, 64, 48, {0, 0, 64, 48}},
        {{0xf, {9, 7, 20, 20}}, 64, 48, {8, 6, 12, 14}},
        {{0xf, {0, 0, 1920, 1080}}, 64, 48, {0, 0, 64, 48}},
        {{0xf, {500, 500, 600, 600}}, 64, 48, {62, 46, 2, 2}},
        {{1u << CROP_X1, {10}}, 64, 48, {10, 0, 54, 48}},
        {{1u << CROP_Y2, {0, 0, 0, 10}}, 64, 48, {0, 0, 64, 10}},
        {{0xf, {1, 1, 2, 2}}, 1, 1, {0, 0, 1, 1}},
        {{0xf, {500, 0, 600, 3}}, 33, 17, {30, 0, 3, 3}},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int rect[4];
        image_crop_rect(&cases[i].crop, cases[i].width, cases[i].height, rect);
        for (int j = 0; j < 4; j++) {
            if (rect[j] != cases[i].rect[j]) {
                fail_msg("case %zu: %d %d %d %d", i, rect[0], rect[1], rect[2], rect[3]);
            }
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_frame_comes_back_as_jpeg),
        TEST(a_crop_is_cut_out_of_the_planes),
        TEST(a_jpeg_is_made_once_for_a_frame),
        TEST(frames_are_kept_apart_bounded_and_forgotten),
        TEST(a_crop_is_moved_into_the_frame_and_stays_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "cmocka_all.h"
#include "detector/image.h"

#include <limits.h>
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

static void put(struct image_store *store, const struct frame *frame, const struct image_loan *loan)
{
    assert_int_equal(image_put(store, "d;c", IMAGE_STREAM, frame, loan, NULL), 0);
}

struct made {
    const uint8_t *grey; /* until the next one is made */
    int width, height;
};

/* The newest frame as JPEG, taken apart again. */
static struct made make(const struct image_store *store, const char *identifier,
                        const struct crop *crop, int width)
{
    static uint8_t grey[IMAGE_PIXELS_MAX * 128];
    struct still *still = image_newest(store, identifier, IMAGE_SHOWN);
    tjhandle decompressor = tjInitDecompress();
    struct image_shape shape;
    struct made made = {.grey = grey};
    uint8_t *jpeg;
    size_t bytes;
    int sampling;
    int space;

    assert_non_null(still);
    image_shape(&shape, &still->frame, crop, width);
    assert_int_equal(image_compress(&still->frame, &shape,
                                    image_boxes(store, identifier, IMAGE_SHOWN), &jpeg, &bytes,
                                    NULL),
                     0);
    assert_int_equal(tjDecompressHeader3(decompressor, jpeg, bytes, &made.width, &made.height,
                                         &sampling, &space),
                     0);
    assert_int_equal(made.width, shape.width);
    assert_int_equal(made.height, shape.height);
    assert_true((size_t)made.width * (size_t)made.height <= sizeof(grey));
    assert_int_equal(tjDecompress2(decompressor, jpeg, bytes, grey, made.width, made.width,
                                   made.height, TJPF_GRAY, 0),
                     0);
    (void)tjDestroy(decompressor);
    tjFree(jpeg);
    return made;
}

static void a_frame_comes_back_as_jpeg(void **state)
{
    struct made made;

    put(*state, a_frame(), NULL);
    made = make(*state, "d;c", NULL, 0);
    assert_int_equal(made.width, WIDTH);
    assert_in_range(made.grey[10 * WIDTH + 5], 25, 35);
    assert_in_range(made.grey[10 * WIDTH + 60], 215, 225);
}

static void a_crop_is_cut_out_of_the_planes(void **state)
{
    struct crop crop = {.given = 0xf, .at = {32, 10, 64, 30}};
    struct made made;

    put(*state, a_frame(), NULL);
    made = make(*state, "d;c", &crop, 0);
    assert_int_equal(made.width, 32);
    assert_int_equal(made.height, 20);
    assert_in_range(made.grey[0], 215, 225);
    assert_in_range(made.grey[32 * 20 - 1], 215, 225);
}

static void a_width_scales_down_and_never_up(void **state)
{
    struct crop crop = {.given = 0xf, .at = {16, 0, 48, 48}};
    struct made made;

    put(*state, a_frame(), NULL);
    made = make(*state, "d;c", NULL, 32);
    assert_int_equal(made.width, 32);
    assert_int_equal(made.height, 24);
    assert_in_range(made.grey[10 * 32 + 2], 25, 35);
    assert_in_range(made.grey[23 * 32 + 29], 215, 225);
    made = make(*state, "d;c", &crop, 21);
    assert_int_equal(made.width, 21);
    assert_int_equal(made.height, 32);
    assert_in_range(made.grey[0], 25, 35);
    assert_in_range(made.grey[21 * 32 - 1], 205, 240);
    for (int width = WIDTH; width <= IMAGE_PIXELS_MAX; width += IMAGE_PIXELS_MAX - WIDTH) {
        made = make(*state, "d;c", NULL, width);
        assert_int_equal(made.width, WIDTH);
    }
}

/* From the widest to the narrowest that may be asked for, and what is left of a sliver. */
static void every_width_can_be_made(void **state)
{
    static const struct {
        int width, height, wanted, made_height;
    } cases[] = {{IMAGE_PIXELS_MAX, 16, 16, 1}, {IMAGE_PIXELS_MAX, 1, 17, 1}, {4000, 3000, 16, 12},
                 {1921, 1081, 333, 187},        {17, 999, 16, 940},           {33, 17, 31, 16}};
    uint8_t *pixels = calloc(1, 4000 * 3000);

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct frame frame = {cases[i].width,
                              cases[i].height,
                              {cases[i].width, cases[i].width, cases[i].width},
                              {pixels, pixels, pixels}};
        struct made made;
        put(*state, &frame, NULL);
        made = make(*state, "d;c", NULL, cases[i].wanted);
        assert_int_equal(made.width, cases[i].wanted);
        assert_int_equal(made.height, cases[i].made_height);
    }
    free(pixels);
}

static void boxes_are_drawn_where_things_are(void **state)
{
    const struct image_box boxes[] = {
        {-100, -100, 10, 10, 0},
        {INT_MIN, 0, INT_MAX, INT_MAX, -7}, /* what a broken model says hurts nobody */
        {INT_MAX, INT_MAX, INT_MAX, INT_MAX, INT_MIN},
        {8, 12, 24, 16, 5}, /* the last colour is white */
    };
    struct crop crop = {.given = 0xf, .at = {0, 8, 48, 40}};
    struct made made;

    image_set_boxes(*state, "d;c", IMAGE_STREAM, boxes, 4); /* no frame yet: nothing */
    put(*state, a_frame(), NULL);
    assert_null(image_boxes(*state, "d;c", IMAGE_SHOWN));
    image_set_boxes(*state, "d;c", IMAGE_STREAM, boxes, 4);
    made = make(*state, "d;c", NULL, 0);
    assert_in_range(made.grey[20 * WIDTH + 8], 180, 255);  /* its left side */
    assert_in_range(made.grey[12 * WIDTH + 16], 180, 255); /* its top */
    assert_in_range(made.grey[20 * WIDTH + 20], 0, 70);    /* within */
    assert_in_range(made.grey[20 * WIDTH + 2], 0, 70);     /* beside */
    made = make(*state, "d;c", &crop, 24);
    assert_int_equal(made.height, 16);
    assert_in_range(made.grey[6 * 24 + 4], 140, 255);
    assert_in_range(made.grey[6 * 24 + 10], 0, 70);
    image_set_boxes(*state, "d;c", IMAGE_STREAM, NULL, 0);
    made = make(*state, "d;c", NULL, 0);
    assert_in_range(made.grey[20 * WIDTH + 8], 25, 35);
}

static void a_still_that_is_held_stays_as_it_is(void **state)
{
    struct frame dark = *a_frame();
    uint8_t luma[STRIDE * HEIGHT] = {0};
    struct still *held;
    uint64_t number;

    put(*state, a_frame(), NULL);
    held = still_hold(image_newest(*state, "d;c", IMAGE_SHOWN));
    number = held->number;
    dark.plane[0] = luma;
    put(*state, &dark, NULL);
    assert_ptr_not_equal(image_newest(*state, "d;c", IMAGE_SHOWN), held);
    assert_true(image_newest(*state, "d;c", IMAGE_SHOWN)->number > number);
    assert_int_equal(held->frame.plane[0][0], 30);
    assert_int_equal(image_newest(*state, "d;c", IMAGE_SHOWN)->frame.plane[0][0], 0);
    image_remove(*state, "d;c");
    assert_int_equal(held->frame.plane[0][WIDTH - 1], 220);
    still_release(held);
}

/* Lends frames, and counts. */
struct lender {
    int lent, given_back;
};

static void lend(const void *owner)
{
    ((struct lender *)owner)->lent++;
}

static void take_back(const void *owner)
{
    ((struct lender *)owner)->given_back++;
}

static void a_frame_that_is_lent_is_shown_where_it_is_and_given_back(void **state)
{
    struct lender first = {0}, second = {0};
    const struct image_loan loan = {&first, lend, take_back};
    const struct image_loan other = {&second, lend, take_back};
    struct still *held;
    struct made made;

    put(*state, a_frame(), &loan);
    assert_ptr_equal(image_newest(*state, "d;c", IMAGE_SHOWN)->frame.plane[0], a_frame()->plane[0]);
    made = make(*state, "d;c", NULL, 0);
    assert_in_range(made.grey[10 * WIDTH + 60], 215, 225);
    assert_int_equal(first.given_back, 0);
    put(*state, a_frame(), &other);
    assert_int_equal(first.lent, 1);
    assert_int_equal(first.given_back, 1);
    held = still_hold(image_newest(*state, "d;c", IMAGE_SHOWN));
    image_remove(*state, "d;c");
    assert_int_equal(second.lent, 1);
    assert_int_equal(second.given_back, 0); /* somebody looks at it */
    still_release(held);
    assert_int_equal(second.given_back, 1);
}

static void what_is_lent_becomes_a_copy_when_nothing_follows(void **state)
{
    struct lender lender = {0};
    const struct image_loan loan = {&lender, lend, take_back};
    struct frame frame = *a_frame();
    static uint8_t luma[STRIDE * HEIGHT];
    uint64_t number;
    struct still *still;

    image_settle(*state, "d;c", IMAGE_STREAM); /* nothing is there */
    memset(luma, 90, sizeof(luma));
    frame.plane[0] = luma;
    put(*state, &frame, &loan);
    number = image_newest(*state, "d;c", IMAGE_SHOWN)->number;
    image_settle(*state, "d;c", IMAGE_STREAM);
    assert_int_equal(lender.given_back, 1);
    memset(luma, 0, sizeof(luma));
    still = image_newest(*state, "d;c", IMAGE_SHOWN);
    assert_int_equal(still->number, number);
    assert_int_equal(still->frame.plane[0][WIDTH * HEIGHT - 1], 90);
    image_settle(*state, "d;c", IMAGE_STREAM);
    assert_ptr_equal(image_newest(*state, "d;c", IMAGE_SHOWN), still);
    assert_int_equal(lender.given_back, 1);
}

/* A stream of the usual size, and snapshots that are smaller. */
static void put_both(struct image_store *store, const struct image_loan *loan)
{
    struct frame small = *a_frame();

    small.width = 32;
    put(store, a_frame(), loan);
    assert_int_equal(image_put(store, "d;c", IMAGE_SNAPSHOT, &small, loan, NULL), 0);
}

static int width_of(const struct image_store *store, enum image_source source)
{
    const struct still *still = image_newest(store, "d;c", source);

    return still != NULL ? still->frame.width : 0;
}

static void the_newest_of_each_source_is_kept_and_one_is_shown(void **state)
{
    struct image_store *store = *state;
    struct lender lender = {0};
    const struct image_loan loan = {&lender, lend, take_back};

    put_both(store, &loan);
    assert_int_equal(width_of(store, IMAGE_SHOWN), WIDTH);
    assert_int_equal(width_of(store, IMAGE_STREAM), WIDTH);
    assert_int_equal(width_of(store, IMAGE_SNAPSHOT), 32);
    assert_true(image_newest(store, "d;c", IMAGE_STREAM)->number !=
                image_newest(store, "d;c", IMAGE_SNAPSHOT)->number);
    image_show(store, "d;c", IMAGE_SNAPSHOT);
    assert_int_equal(width_of(store, IMAGE_SHOWN), 32);
    image_settle(store, "d;c", IMAGE_STREAM);
    assert_int_equal(lender.given_back, 1);
    assert_int_equal(width_of(store, IMAGE_STREAM), WIDTH);
    image_drop(store, "d;c", IMAGE_SNAPSHOT);
    assert_int_equal(lender.given_back, 2);
    assert_int_equal(width_of(store, IMAGE_SHOWN), 0);
    assert_int_equal(width_of(store, IMAGE_STREAM), WIDTH);
    put_both(store, &loan);
    image_remove(store, "d;c");
    assert_int_equal(lender.lent, lender.given_back);
    image_show(store, "d;c", IMAGE_STREAM); /* nothing is there */
    image_drop(store, "d;c", IMAGE_STREAM);
}

static void boxes_are_those_of_the_source_that_is_shown(void **state)
{
    static const struct image_box box = {1, 2, 3, 4, 0};
    struct image_store *store = *state;

    put_both(store, NULL);
    image_set_boxes(store, "d;c", IMAGE_SNAPSHOT, &box, 1); /* late: it is not shown any more */
    assert_null(image_boxes(store, "d;c", IMAGE_SNAPSHOT));
    image_set_boxes(store, "d;c", IMAGE_STREAM, &box, 1);
    assert_non_null(image_boxes(store, "d;c", IMAGE_STREAM));
    assert_ptr_equal(image_boxes(store, "d;c", IMAGE_SHOWN),
                     image_boxes(store, "d;c", IMAGE_STREAM));
    assert_null(image_boxes(store, "d;c", IMAGE_SNAPSHOT));
    image_show(store, "d;c", IMAGE_STREAM); /* as before */
    assert_non_null(image_boxes(store, "d;c", IMAGE_SHOWN));
    image_show(store, "d;c", IMAGE_SNAPSHOT);
    assert_null(image_boxes(store, "d;c", IMAGE_SHOWN));
    assert_null(image_boxes(store, "d;c", IMAGE_STREAM));
    image_set_boxes(store, "d;c", IMAGE_SNAPSHOT, &box, 1);
    image_drop(store, "d;c", IMAGE_STREAM);
    assert_non_null(image_boxes(store, "d;c", IMAGE_SHOWN));
    image_drop(store, "d;c", IMAGE_SNAPSHOT);
    assert_null(image_boxes(store, "d;c", IMAGE_SHOWN));
}

static void frames_are_kept_apart_bounded_and_forgotten(void **state)
{
    struct baton_error error = {0};
    struct frame odd = *a_frame();
    struct frame huge = *a_frame();
    struct made made;

    assert_null(image_newest(*state, "d;c", IMAGE_SHOWN));
    odd.width = 33;
    odd.height = 17;
    assert_int_equal(image_put(*state, "a;1", IMAGE_STREAM, a_frame(), NULL, NULL), 0);
    assert_int_equal(image_put(*state, "a;2", IMAGE_STREAM, &odd, NULL, NULL), 0);
    assert_int_equal(image_put(*state, "a;3", IMAGE_STREAM, a_frame(), NULL, &error), BATON_EFULL);
    made = make(*state, "a;2", NULL, 0);
    assert_int_equal(made.width, 33);
    assert_int_equal(made.height, 17);
    image_remove(*state, "a;1");
    image_remove(*state, "a;1");
    assert_null(image_newest(*state, "a;1", IMAGE_SHOWN));
    assert_non_null(image_newest(*state, "a;2", IMAGE_SHOWN));
    huge.width = IMAGE_PIXELS_MAX + 1;
    assert_int_equal(image_put(*state, "a;1", IMAGE_STREAM, &huge, NULL, &error), BATON_EINVAL);
    huge.width = 0;
    assert_int_equal(image_put(*state, "a;1", IMAGE_STREAM, &huge, NULL, &error), BATON_EINVAL);
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
        TEST(a_width_scales_down_and_never_up),
        TEST(every_width_can_be_made),
        TEST(boxes_are_drawn_where_things_are),
        TEST(a_still_that_is_held_stays_as_it_is),
        TEST(a_frame_that_is_lent_is_shown_where_it_is_and_given_back),
        TEST(what_is_lent_becomes_a_copy_when_nothing_follows),
        TEST(the_newest_of_each_source_is_kept_and_one_is_shown),
        TEST(boxes_are_those_of_the_source_that_is_shown),
        TEST(frames_are_kept_apart_bounded_and_forgotten),
        TEST(a_crop_is_moved_into_the_frame_and_stays_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

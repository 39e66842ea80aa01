#include "cmocka_all.h"
#include "detector/image.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

enum { WIDTH = 64, HEIGHT = 48, STRIDE = 80, SHAPES = 48 };

/* Left half dark, right half bright; rows longer than the picture. */
static const struct frame *a_frame(void)
{
    static uint8_t luma[STRIDE * HEIGHT];
    static uint8_t chroma[STRIDE * HEIGHT];
    static const struct frame frame = {.width = WIDTH,
                                       .height = HEIGHT,
                                       .stride = {STRIDE, STRIDE, STRIDE},
                                       .plane = {luma, chroma, chroma},
                                       .is_full_range = true};
    memset(luma, 255, sizeof(luma));
    memset(chroma, 128, sizeof(chroma));
    for (int y = 0; y < HEIGHT; y++) {
        memset(luma + (ptrdiff_t)STRIDE * y, 30, WIDTH / 2);
        memset(luma + (ptrdiff_t)STRIDE * y + WIDTH / 2, 220, WIDTH / 2);
    }
    return &frame;
}

struct made {
    const uint8_t *grey; /* until the next one is made */
    int width, height;
};

static uv_loop_t loop;
static struct image_store store;
static struct images images;
static unsigned done, failed, given_back;
static struct made last;               /* that is done */
static const struct encoding *awaited; /* by the latest that asked */

/* A JPEG taken apart again. */
static struct made decode(const uint8_t *jpeg, size_t bytes)
{
    static uint8_t grey[IMAGE_PIXELS_MAX * 128];
    tjhandle decompressor = tjInitDecompress();
    struct made made = {.grey = grey};
    int sampling, space;

    assert_int_equal(tjDecompressHeader3(decompressor, jpeg, bytes, &made.width, &made.height,
                                         &sampling, &space),
                     0);
    assert_true((size_t)made.width * (size_t)made.height <= sizeof(grey));
    assert_int_equal(tjDecompress2(decompressor, jpeg, bytes, grey, made.width, made.width,
                                   made.height, TJPF_GRAY, 0),
                     0);
    (void)tjDestroy(decompressor);
    return made;
}

static void on_made(void *userdata, const struct encoding *encoding)
{
    assert_ptr_equal(userdata, &loop);
    done++;
    failed += encoding->jpeg == NULL;
    if (encoding->jpeg != NULL) {
        last = decode(encoding->jpeg, encoding->bytes);
    }
}

static int set_up(void **state)
{
    assert_int_equal(uv_loop_init(&loop), 0);
    store = (struct image_store){.loop = &loop, .made = on_made, .userdata = &loop};
    images = (struct images){0};
    done = failed = given_back = 0;
    return 0;
}

static void run(void)
{
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
}

static int tear_down(void **state)
{
    image_store_close(&store);
    images_fini(&images);
    run();
    return uv_loop_close(&loop);
}

static void on_free(struct frame *frame)
{
    given_back++;
    free(frame);
}

/* A frame of its own, whose samples are the given one's. */
static void put_as(enum image_source source, const struct frame *given)
{
    struct frame *frame = malloc(sizeof(*frame));

    *frame = *given;
    frame->source = source;
    frame->refs = 1;
    frame->free = on_free;
    image_put(&store, &images, frame);
    frame_unref(frame);
}

static void put(const struct frame *frame)
{
    put_as(IMAGE_STREAM, frame);
}

/* The newest frame as JPEG, by this thread. */
static struct made make(const struct crop *crop, int width)
{
    const struct frame *frame = image_newest(&images, IMAGE_SHOWN);
    struct image_shape shape;
    struct made made;
    uint8_t *jpeg;
    size_t bytes;

    image_shape(&shape, frame, crop, width, image_boxes(&images, IMAGE_SHOWN));
    assert_int_equal(image_compress(frame, &shape, &jpeg, &bytes, NULL), 0);
    made = decode(jpeg, bytes);
    tjFree(jpeg);
    assert_int_equal(made.width, shape.width);
    assert_int_equal(made.height, shape.height);
    return made;
}

/* The same, by another one. */
static int ask(int width)
{
    struct frame *frame = image_newest(&images, IMAGE_SHOWN);
    struct image_shape shape;
    struct baton_error error;

    image_shape(&shape, frame, NULL, width, image_boxes(&images, IMAGE_SHOWN));
    return image_ask(&store, frame, &shape, &awaited, &error);
}

static void a_width_scales_down_and_never_up(void **state)
{
    static const struct {
        struct crop crop;
        int wanted, width, height;
        int first, last; /* grey */
    } cases[] = {
        {{0xf, {32, 10, 64, 30}}, 0, 32, 20, 220, 220},  {{0}, 32, 32, 24, 30, 220},
        {{0xf, {16, 0, 48, 48}}, 21, 21, 32, 30, 220},   {{0}, WIDTH, WIDTH, HEIGHT, 30, 220},
        {{0}, IMAGE_PIXELS_MAX, WIDTH, HEIGHT, 30, 220}, {{0}, 0, WIDTH, HEIGHT, 30, 220},
    };

    put(a_frame());
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct made made = make(&cases[i].crop, cases[i].wanted);
        assert_int_equal(made.width, cases[i].width);
        assert_int_equal(made.height, cases[i].height);
        assert_in_range(made.grey[0], cases[i].first - 5, cases[i].first + 5);
        assert_in_range(made.grey[made.width * made.height - 1], cases[i].last - 15,
                        cases[i].last + 15);
    }
}

/* A JPEG has the full range and the matrix of BT.601, whatever the frame has. */
static void every_range_and_matrix_comes_back_as_the_same_colour(void **state)
{
    static const struct {
        bool is_full_range, is_bt709;
        uint8_t samples[3];
        int grey;
    } cases[] = {
        {false, false, {16, 128, 128}, 0},   {false, true, {235, 128, 128}, 255},
        {false, false, {81, 90, 240}, 76},   {false, true, {63, 102, 240}, 76}, /* red */
        {true, false, {76, 85, 255}, 76},    {true, true, {54, 99, 255}, 76},
        {true, false, {235, 128, 128}, 235},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        uint8_t planes[3][WIDTH * HEIGHT];
        struct frame frame = {.width = WIDTH,
                              .height = HEIGHT,
                              .stride = {WIDTH, WIDTH, WIDTH},
                              .plane = {planes[0], planes[1], planes[2]},
                              .is_full_range = cases[i].is_full_range,
                              .is_bt709 = cases[i].is_bt709};
        for (int plane = 0; plane < 3; plane++) {
            memset(planes[plane], cases[i].samples[plane], sizeof(planes[plane]));
        }
        put(&frame);
        for (int width = 0; width <= WIDTH / 2; width += WIDTH / 2) {
            int grey = make(NULL, width).grey[0];
            assert_in_range(grey + 3, cases[i].grey, cases[i].grey + 6);
        }
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
        struct frame frame = {.width = cases[i].width,
                              .height = cases[i].height,
                              .stride = {cases[i].width, cases[i].width, cases[i].width},
                              .plane = {pixels, pixels, pixels}};
        struct made made;
        put(&frame);
        made = make(NULL, cases[i].wanted);
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

    image_set_boxes(&images, IMAGE_STREAM, boxes, 4); /* no frame yet: nothing */
    put(a_frame());
    assert_null(image_boxes(&images, IMAGE_SHOWN));
    image_set_boxes(&images, IMAGE_STREAM, boxes, 4);
    made = make(NULL, 0);
    assert_in_range(made.grey[20 * WIDTH + 8], 180, 255);  /* its left side */
    assert_in_range(made.grey[12 * WIDTH + 16], 180, 255); /* its top */
    assert_in_range(made.grey[20 * WIDTH + 20], 0, 70);    /* within */
    assert_in_range(made.grey[20 * WIDTH + 2], 0, 70);     /* beside */
    made = make(&crop, 24);
    assert_int_equal(made.height, 16);
    assert_in_range(made.grey[6 * 24 + 4], 140, 255);
    assert_in_range(made.grey[6 * 24 + 10], 0, 70);
    image_set_boxes(&images, IMAGE_STREAM, NULL, 0);
    made = make(NULL, 0);
    assert_in_range(made.grey[20 * WIDTH + 8], 25, 35);
}

static void subscriptions_of_a_camera_share_its_frame_and_the_pictures_of_it(void **state)
{
    const struct image_box here = {1, 2, 30, 40, 0}, there = {50, 2, 30, 40, 0};
    struct images own = {0};
    struct frame *frame;

    put(a_frame());
    frame = image_newest(&images, IMAGE_SHOWN);
    assert_ptr_equal(frame->plane[0], a_frame()->plane[0]);
    assert_int_equal(ask(0), BATON_EBUSY);
    run();
    image_put(&store, &own, frame);
    images_fini(&images);
    image_put(&store, &images, frame);
    assert_int_equal(ask(0), 0); /* made already */
    image_set_boxes(&images, IMAGE_STREAM, &here, 1);
    image_set_boxes(&own, IMAGE_STREAM, &there, 1);
    assert_int_equal(ask(0), BATON_EBUSY);
    assert_true(images.boxes.number != own.boxes.number); /* their tags may be of one name */
    images.boxes = own.boxes;
    assert_int_equal(ask(0), BATON_EBUSY);
    run();
    images_fini(&images);
    assert_int_equal(given_back, 0);
    images_fini(&own);
    assert_int_equal(given_back, 1);
}

/* A stream of the usual size, and snapshots that are smaller. */
static void put_both(void)
{
    struct frame small = *a_frame();

    small.width = 32;
    put(a_frame());
    put_as(IMAGE_SNAPSHOT, &small);
}

static int width_of(enum image_source source)
{
    const struct frame *frame = image_newest(&images, source);

    return frame != NULL ? frame->width : 0;
}

static void the_newest_of_each_source_is_kept_and_one_is_shown(void **state)
{
    put_both();
    assert_int_equal(width_of(IMAGE_SHOWN), WIDTH);
    assert_int_equal(width_of(IMAGE_STREAM), WIDTH);
    assert_int_equal(width_of(IMAGE_SNAPSHOT), 32);
    assert_true(image_newest(&images, IMAGE_STREAM)->id !=
                image_newest(&images, IMAGE_SNAPSHOT)->id);
    image_show(&images, IMAGE_SNAPSHOT);
    assert_int_equal(width_of(IMAGE_SHOWN), 32);
    image_drop(&images, IMAGE_SNAPSHOT);
    assert_int_equal(given_back, 1);
    assert_int_equal(width_of(IMAGE_SHOWN), 0);
    assert_int_equal(width_of(IMAGE_STREAM), WIDTH);
    put_both();
    images_fini(&images);
    assert_int_equal(given_back, 4);
}

static void boxes_are_those_of_the_source_that_is_shown(void **state)
{
    static const struct image_box box = {1, 2, 3, 4, 0};

    put_both();
    image_set_boxes(&images, IMAGE_SNAPSHOT, &box, 1); /* late: it is not shown any more */
    assert_null(image_boxes(&images, IMAGE_SNAPSHOT));
    image_set_boxes(&images, IMAGE_STREAM, &box, 1);
    assert_non_null(image_boxes(&images, IMAGE_STREAM));
    assert_ptr_equal(image_boxes(&images, IMAGE_SHOWN), image_boxes(&images, IMAGE_STREAM));
    assert_null(image_boxes(&images, IMAGE_SNAPSHOT));
    image_show(&images, IMAGE_STREAM); /* as before */
    assert_non_null(image_boxes(&images, IMAGE_SHOWN));
    image_show(&images, IMAGE_SNAPSHOT);
    assert_null(image_boxes(&images, IMAGE_SHOWN));
    assert_null(image_boxes(&images, IMAGE_STREAM));
    image_set_boxes(&images, IMAGE_SNAPSHOT, &box, 1);
    image_drop(&images, IMAGE_STREAM);
    assert_non_null(image_boxes(&images, IMAGE_SHOWN));
    image_drop(&images, IMAGE_SNAPSHOT);
    assert_null(image_boxes(&images, IMAGE_SHOWN));
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

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int rect[4];
        image_crop_rect(&cases[i].crop, cases[i].width, cases[i].height, rect);
        assert_memory_equal(rect, cases[i].rect, sizeof(rect));
    }
}

/* ---- Pictures that are asked for ---- */

static void a_picture_is_made_once_for_all_who_ask(void **state)
{
    const struct encoding *first;

    put(a_frame());
    assert_int_equal(ask(32), BATON_EBUSY);
    first = awaited;
    for (int i = 0; i < 9; i++) {
        assert_int_equal(ask(32), BATON_EBUSY);
        assert_ptr_equal(awaited, first);
    }
    assert_int_equal(ask(0), BATON_EBUSY);
    assert_ptr_not_equal(awaited, first);
    run();
    assert_int_equal(done, 2);
    assert_int_equal(store.counters.made, 2);
    assert_int_equal(ask(32), 0);
    assert_ptr_equal(awaited, first);
    assert_int_equal(ask(WIDTH + 1), 0); /* never up: the same as none */
    put(a_frame());
    assert_int_equal(ask(32), BATON_EBUSY);
    run();
    assert_int_equal(store.counters.made, 3);
    assert_int_equal(failed, 0);
}

static void of_many_shapes_the_newest_are_kept(void **state)
{
    put(a_frame());
    for (int width = 16; width <= 16 + IMAGE_KEPT_MAX; width++) {
        assert_int_equal(ask(width), BATON_EBUSY);
        run();
    }
    assert_int_equal(ask(16), BATON_EBUSY);
    assert_int_equal(ask(17), 0);
}

static void other_boxes_are_another_picture(void **state)
{
    const struct image_box boxes[] = {{10, 10, 100, 100, 0}, {50, 60, 70, 80, 1}};

    put(a_frame());
    assert_int_equal(ask(32), BATON_EBUSY);
    image_set_boxes(&images, IMAGE_STREAM, boxes, 2);
    assert_int_equal(ask(32), BATON_EBUSY);
    image_set_boxes(&images, IMAGE_STREAM, boxes, 2);
    assert_int_equal(ask(32), BATON_EBUSY); /* the same */
    image_set_boxes(&images, IMAGE_STREAM, boxes, 1);
    assert_int_equal(ask(32), BATON_EBUSY);
    image_set_boxes(&images, IMAGE_STREAM, NULL, 0); /* those under way are held */
    assert_int_equal(ask(32), BATON_EBUSY);
    run();
    assert_int_equal(done, 3);
    assert_int_equal(store.counters.made, 3);
    assert_int_equal(ask(32), 0);
}

static void too_many_are_refused_and_the_others_come(void **state)
{
    unsigned taken = 0;

    put(a_frame());
    for (int i = 0; i < SHAPES; i++) {
        int rc = ask(16 + i);
        assert_true(rc == BATON_EBUSY || rc == BATON_EUNAVAILABLE);
        taken += rc == BATON_EBUSY;
    }
    assert_int_equal(taken, IMAGE_ENCODINGS_MAX);
    assert_int_equal(store.counters.refused, SHAPES - taken);
    assert_int_equal(ask(16), BATON_EBUSY); /* one that is awaited already costs nothing */
    run();
    assert_int_equal(done, taken);
    assert_int_equal(store.counters.waiting, 0);
    assert_int_equal(ask(16 + SHAPES - 1), BATON_EBUSY);
}

static void new_frames_do_not_disturb_what_is_under_way(void **state)
{
    struct frame dark = *a_frame();
    uint8_t luma[STRIDE * HEIGHT] = {0};

    dark.plane[0] = luma;
    for (int i = 0; i < 20; i++) {
        put(a_frame());
        assert_int_equal(ask(0), BATON_EBUSY);
        put(&dark);
    }
    images_fini(&images);
    assert_int_equal(given_back, 20); /* those under way are held */
    run();
    assert_int_equal(given_back, 40);
    assert_int_equal(done, 20);
    assert_int_equal(failed, 0);
    assert_in_range(last.grey[WIDTH - 1], 215, 225);
}

static void a_close_forgets_what_waits(void **state)
{
    put(a_frame());
    for (int i = 0; i < 20; i++) {
        assert_int_equal(ask(16 + i), BATON_EBUSY);
    }
    image_store_close(&store);
    run();
    assert_int_equal(done, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_width_scales_down_and_never_up),
        TEST(every_range_and_matrix_comes_back_as_the_same_colour),
        TEST(every_width_can_be_made),
        TEST(boxes_are_drawn_where_things_are),
        TEST(subscriptions_of_a_camera_share_its_frame_and_the_pictures_of_it),
        TEST(the_newest_of_each_source_is_kept_and_one_is_shown),
        TEST(boxes_are_those_of_the_source_that_is_shown),
        TEST(a_crop_is_moved_into_the_frame_and_stays_even),
        TEST(a_picture_is_made_once_for_all_who_ask),
        TEST(of_many_shapes_the_newest_are_kept),
        TEST(other_boxes_are_another_picture),
        TEST(too_many_are_refused_and_the_others_come),
        TEST(new_frames_do_not_disturb_what_is_under_way),
        TEST(a_close_forgets_what_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "cmocka_all.h"
#include "detector/image_encoder.h"

#include <stdlib.h>
#include <string.h>

enum { WIDTH = 640, HEIGHT = 480, SHAPES = 200 };

struct bench {
    uv_loop_t loop;
    struct image_store *store;
    struct encoder *encoder;
    unsigned done, failed;
    const struct encoding *awaited, *last; /* by the latest that asked; done last */
    uint8_t pixels[WIDTH * HEIGHT];
};

static void on_done(void *userdata, const struct encoding *awaited, const struct image *image,
                    const struct baton_error *error)
{
    struct bench *bench = userdata;

    (void)error;
    bench->done++;
    bench->failed += image == NULL;
    bench->last = awaited;
    if (image != NULL) {
        assert_int_equal(image->jpeg[0], 0xff);
        assert_int_equal(image->jpeg[1], 0xd8);
    }
}

static void put(struct bench *bench)
{
    const struct frame frame = {WIDTH,
                                HEIGHT,
                                {WIDTH, WIDTH / 2, WIDTH / 2},
                                {bench->pixels, bench->pixels, bench->pixels}};
    assert_int_equal(image_put(bench->store, "a;1", IMAGE_STREAM, &frame, NULL, NULL), 0);
}

static int ask(struct bench *bench, int width)
{
    struct still *still = image_newest(bench->store, "a;1", IMAGE_SHOWN);
    struct image image;
    struct image_shape shape;
    struct baton_error error;

    image_shape(&shape, &still->frame, NULL, width);
    return encoder_ask(bench->encoder, still, &shape, image_boxes(bench->store, "a;1", IMAGE_SHOWN),
                       &bench->awaited, &image, &error);
}

static void run(struct bench *bench)
{
    assert_int_equal(uv_run(&bench->loop, UV_RUN_DEFAULT), 0);
}

static int set_up(void **state)
{
    struct bench *bench = calloc(1, sizeof(*bench));

    *state = bench;
    assert_int_equal(uv_loop_init(&bench->loop), 0);
    bench->store = image_store_new(2);
    bench->encoder = encoder_new(&bench->loop, on_done, bench);
    put(bench);
    return 0;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;

    encoder_close(bench->encoder);
    run(bench);
    encoder_free(bench->encoder);
    image_store_free(bench->store);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
    free(bench);
    return 0;
}

static void a_picture_is_made_once_for_all_who_ask(void **state)
{
    const struct encoding *first;
    struct bench *bench = *state;

    assert_int_equal(ask(bench, 320), BATON_EBUSY);
    first = bench->awaited;
    for (int i = 0; i < 9; i++) {
        assert_int_equal(ask(bench, 320), BATON_EBUSY);
        assert_ptr_equal(bench->awaited, first);
    }
    assert_int_equal(ask(bench, 0), BATON_EBUSY);
    assert_ptr_not_equal(bench->awaited, first);
    run(bench);
    assert_int_equal(bench->done, 2);
    assert_int_equal(bench->failed, 0);
    assert_int_equal(encoder_counters(bench->encoder)->made, 2);
    assert_int_equal(ask(bench, 320), 0);
    assert_int_equal(ask(bench, WIDTH + 1), 0); /* never up: the same as none */
    put(bench);
    assert_int_equal(ask(bench, 320), BATON_EBUSY);
    run(bench);
    assert_int_equal(encoder_counters(bench->encoder)->made, 3);
    assert_ptr_equal(bench->last, bench->awaited);
}

static void other_boxes_are_another_picture(void **state)
{
    const struct image_box boxes[] = {{10, 10, 100, 100, 0}, {50, 60, 70, 80, 1}};
    struct bench *bench = *state;

    assert_int_equal(ask(bench, 320), BATON_EBUSY);
    image_set_boxes(bench->store, "a;1", IMAGE_STREAM, boxes, 2);
    assert_int_equal(ask(bench, 320), BATON_EBUSY);
    image_set_boxes(bench->store, "a;1", IMAGE_STREAM, boxes, 2);
    assert_int_equal(ask(bench, 320), BATON_EBUSY); /* the same */
    image_set_boxes(bench->store, "a;1", IMAGE_STREAM, boxes, 1);
    assert_int_equal(ask(bench, 320), BATON_EBUSY);
    image_set_boxes(bench->store, "a;1", IMAGE_STREAM, NULL, 0); /* those under way are held */
    assert_int_equal(ask(bench, 320), BATON_EBUSY);
    run(bench);
    assert_int_equal(bench->done, 3);
    assert_int_equal(encoder_counters(bench->encoder)->made, 3);
    assert_int_equal(ask(bench, 320), 0);
}

static void too_many_are_refused_and_the_others_come(void **state)
{
    struct bench *bench = *state;
    unsigned taken = 0;

    for (int i = 0; i < SHAPES; i++) {
        int rc = ask(bench, 16 + i);
        assert_true(rc == BATON_EBUSY || rc == BATON_EUNAVAILABLE);
        taken += rc == BATON_EBUSY;
    }
    assert_int_equal(taken, ENCODER_MAX);
    assert_int_equal(encoder_counters(bench->encoder)->refused, SHAPES - taken);
    assert_int_equal(ask(bench, 16), BATON_EBUSY); /* one that is awaited already costs nothing */
    run(bench);
    assert_int_equal(bench->done, taken);
    assert_int_equal(encoder_counters(bench->encoder)->waiting, 0);
    assert_int_equal(ask(bench, 300), BATON_EBUSY);
}

static void new_frames_do_not_disturb_what_is_under_way(void **state)
{
    struct bench *bench = *state;

    for (int i = 0; i < 20; i++) {
        assert_int_equal(ask(bench, 0), BATON_EBUSY);
        put(bench);
    }
    image_remove(bench->store, "a;1");
    run(bench);
    assert_int_equal(bench->done, 20);
    assert_int_equal(bench->failed, 0);
}

static void a_close_forgets_what_waits(void **state)
{
    struct bench *bench = *state;

    for (int i = 0; i < 20; i++) {
        assert_int_equal(ask(bench, 16 + i), BATON_EBUSY);
    }
    encoder_close(bench->encoder);
    run(bench);
    assert_int_equal(bench->done, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_picture_is_made_once_for_all_who_ask),
        TEST(other_boxes_are_another_picture),
        TEST(too_many_are_refused_and_the_others_come),
        TEST(new_frames_do_not_disturb_what_is_under_way),
        TEST(a_close_forgets_what_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Clips through the whole way: child, fences, shared memory, callbacks. */
#include "cmocka_all.h"

#include "detector/camera/ring.h"
#include "stage.h"

#include <string.h>
#include <sys/mman.h>

enum { TURNS_MAX = 20, SLOW = RING_HELD_MAX - 5 };

static int begin(void **state)
{
    gallery_init(&gallery);
    return 0;
}

/* Hardware that is not there is done without. */
static void every_frame_of_each_codec_arrives_and_shows_what_it_should(void **state)
{
    static const struct {
        const char *name, *codec;
        int width, height;
        char hardware[MESSAGE_NAME_MAX + 1];
    } clips[] = {
        {"rects.mp4", "h264", 320, 240, ""},         {"bframes.mp4", "h264", 320, 240, ""},
        {"full_range.mp4", "h264", 320, 240, ""},    {"odd.mp4", "h264", 321, 241, ""},
        {"rects265.mp4", "hevc", 320, 240, ""},      {"mjpeg.avi", "mjpeg", 320, 240, ""},
        {"rects.mp4", "h264", 320, 240, "nonesuch"},
    };

    for (size_t i = 0; i < sizeof(clips) / sizeof(clips[0]); i++) {
        struct camera_options options = {.is_lossless = true};
        struct viewer viewer = {.check = CHECK_TIME};

        memcpy(options.hardware, clips[i].hardware, sizeof(options.hardware));
        print_message("%s\n", clips[i].name);
        viewer_open(&viewer, &gallery, clip(clips[i].name), &options);
        AWAIT_IN(&gallery, viewer.is_ended);
        const struct camera_stats stats = viewer_stats(&viewer);
        assert_int_equal(viewer.frames, 45);
        assert_int_equal(viewer.wrong, 0);
        assert_int_equal(viewer.width, clips[i].width);
        assert_int_equal(viewer.height, clips[i].height);
        assert_string_equal(stats.codec, clips[i].codec);
        assert_string_equal(stats.hardware, "");
        assert_int_equal(stats.counts.decoded, 45);
        assert_int_equal(stats.skipped, 0);
        viewer_close(&viewer);
    }
}

/* Until the viewer holds as many frames as it can, and the next ones are left out; then gives them
 * back, and is shown a further one. False: the clip had ended before. */
static bool hold_and_let_go(struct viewer *viewer)
{
    const struct camera_options options = {.is_paced = true};

    *viewer = (struct viewer){.holds = RING_HELD_MAX};
    viewer_open(viewer, &gallery, clip("bframes.mp4"), &options);
    AWAIT_IN(&gallery, viewer_stats(viewer).skipped >= 3 || viewer->is_ended);
    assert_in_range(viewer->frames, 1, RING_HELD_MAX);
    if (viewer->frames == RING_HELD_MAX) {
        viewer_let_go(viewer, 0);
        AWAIT_IN(&gallery, viewer->frames > RING_HELD_MAX || viewer->is_ended);
    }
    return viewer->frames > RING_HELD_MAX;
}

static void frames_that_are_held_stay_as_they_are_and_the_decoder_goes_on(void **state)
{
    const struct camera_options options = {.is_paced = true};
    struct viewer viewer, witness = {0};

    for (int turn = 0; !hold_and_let_go(&viewer); turn++) { /* a busy machine leaves frames out */
        assert_true(turn < TURNS_MAX);
        viewer_let_go(&viewer, 0);
        viewer_close(&viewer);
    }
    assert_true(viewer_stats(&viewer).counts.decoded > RING_HELD_MAX);
    viewer_open(&witness, &gallery, clip("rects265.mp4"), &options); /* all is well after it */
    viewer_run_frames(&witness, 5);
}

/* As slow models do, each with a frame at work and one that waits. */
static void who_holds_frames_for_long_holds_nobody_else_up(void **state)
{
    const struct camera_options options = {.is_paced = true};
    struct viewer slow = {.holds = SLOW}, fast = {.check = CHECK_TIME};

    viewer_open(&slow, &gallery, clip("rects265.mp4"), &options);
    viewer_open(&fast, &gallery, clip("rects265.mp4"), &options);
    AWAIT_IN(&gallery, fast.is_ended);
    assert_int_equal(slow.kept_count, slow.frames < SLOW ? slow.frames : SLOW);
    assert_int_equal(fast.wrong, 0);
    /* What the machine was too busy for is left out, at the end untold. */
    assert_in_range(fast.frames + viewer_stats(&fast).skipped, 45 - 6, 45);
    assert_true(fast.frames > 1);
    viewer_let_go(&slow, 0);
}

/* How many slots of the only ring have memory. */
static unsigned slots_in_memory(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    unsigned long ring = 0;
    unsigned count = 0;
    char line[256];

    while (fgets(line, sizeof(line), maps) && strstr(line, "baton-frames") == NULL) {
    }
    assert_int_equal(sscanf(line, "%lx-", &ring), 1);
    (void)fclose(maps);
    for (unsigned long slot = 0; slot < RING_SLOTS; slot++) {
        unsigned char is_there = 0;
        (void)mincore((void *)(ring + slot * RING_STRIDE), 1, &is_there); /* NOLINT */
        count += is_there;
    }
    return count;
}

static void a_frame_outlives_its_camera_and_the_pool_and_nothing_else_does(void **state)
{
    struct gallery passing;
    struct viewer viewer = {.holds = 2};

    gallery_init(&passing);
    viewer_open(&viewer, &passing, clip("rects.mp4"), &(struct camera_options){.is_paced = true});
    viewer_run_frames(&viewer, 3);
    assert_true(slots_in_memory() > 2);
    gallery_fini(&passing);
    assert_int_equal(slots_in_memory(), 2);
    viewer_let_go(&viewer, 1);
    assert_int_equal(slots_in_memory(), 1);
    viewer_let_go(&viewer, 0);
}

static void the_shortest_interval_of_all_counts(void **state)
{
    const struct camera_options fast = {.is_paced = true, .interval_ms = 100};
    const struct camera_options slow = {.is_paced = true, .interval_ms = 500};
    struct viewer viewers[2] = {0};

    viewer_open(&viewers[0], &gallery, clip("rects.mp4"), &slow);
    viewer_open(&viewers[1], &gallery, clip("rects.mp4"), &fast);
    AWAIT_IN(&gallery, viewers[1].is_ended);
    const struct camera_stats stats = viewer_stats(&viewers[0]);
    assert_int_equal(viewers[1].frames, viewers[0].frames);
    /* 30 but on a busy machine */
    assert_in_range(viewers[0].frames + stats.skipped, 7, stats.counts.decoded - 1);
    assert_true(stats.counts.dropped > 0);
}

static void with_a_motion_gate_only_what_moves_is_shown(void **state)
{
    const struct camera_options all = {.is_lossless = true, .motion_permille = 1};
    const struct camera_options none = {.is_lossless = true, .motion_permille = 900};
    struct viewer moving = {0}, still = {0};

    viewer_open(&moving, &gallery, clip("rects.mp4"), &all);
    viewer_open(&still, &gallery, clip("rects.mp4"), &none);
    AWAIT_IN(&gallery, moving.is_ended);
    assert_true(moving.frames > 35);
    assert_int_equal(still.frames, 1); /* the first */
    assert_int_equal(viewer_stats(&still).still, 44);
}

static void a_file_is_decoded_behind_both_fences(void **state)
{
    const struct camera_options paced = {.is_paced = true};
    struct viewer viewer = {0};

    viewer_open(&viewer, &gallery, clip("rects.mp4"), &paced);
    viewer_run_frames(&viewer, 1);
    assert_int_equal(viewer_fences(&viewer), 2);
}

static void a_file_is_refused_where_files_are_not_allowed(void **state)
{
    const struct camera_pool_config config = {.loop = &gallery.loop,
                                              .program = BATON_CAMERA_PROGRAM};
    const struct camera_callbacks callbacks = {0};
    struct camera_pool *pool;
    struct camera *camera;

    assert_int_equal(camera_pool_new(&pool, &config, NULL), 0);
    assert_int_equal(camera_open(&camera, pool, clip("rects.mp4"), &(struct camera_options){0},
                                 &callbacks, NULL),
                     BATON_EINVAL);
    camera_pool_close(pool);
    camera_pool_free(pool);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, stage_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(every_frame_of_each_codec_arrives_and_shows_what_it_should),
        CASE(frames_that_are_held_stay_as_they_are_and_the_decoder_goes_on),
        CASE(who_holds_frames_for_long_holds_nobody_else_up),
        CASE(a_frame_outlives_its_camera_and_the_pool_and_nothing_else_does),
        CASE(the_shortest_interval_of_all_counts),
        CASE(with_a_motion_gate_only_what_moves_is_shown),
        CASE(a_file_is_decoded_behind_both_fences),
        CASE(a_file_is_refused_where_files_are_not_allowed),
    };
    return cmocka_run_group_tests_name("integration_camera_clips", tests, NULL, NULL);
}

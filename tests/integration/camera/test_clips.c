/* Clips through the whole way: child, fences, shared memory, callbacks. */
#include "cmocka_all.h"

#include "viewer.h"

#include <stdio.h>
#include <string.h>

static void every_frame_of_each_codec_arrives_and_shows_what_it_should(void **state)
{
    static const struct {
        const char *name, *codec;
        int width, height;
    } clips[] = {
        {"rects.mp4", "h264", 320, 240},      {"bframes.mp4", "h264", 320, 240},
        {"full_range.mp4", "h264", 320, 240}, {"odd.mp4", "h264", 321, 241},
        {"rects265.mp4", "hevc", 320, 240},   {"mjpeg.avi", "mjpeg", 320, 240},
    };
    const struct camera_options options = {.is_lossless = true};

    (void)state;
    for (size_t i = 0; i < sizeof(clips) / sizeof(clips[0]); i++) {
        struct gallery gallery;
        struct viewer viewer = {.check = CHECK_TIME};
        struct camera_stats stats;

        print_message("%s\n", clips[i].name);
        gallery_init(&gallery);
        viewer_open(&viewer, &gallery, clip(clips[i].name), &options);
        gallery_run_until(&gallery, viewer_has_ended, &viewer);
        camera_stats(viewer.camera, &stats);
        print_message("%u frames, %u wrong\n", viewer.frames, viewer.wrong);
        assert_int_equal(viewer.frames, 45);
        assert_int_equal(viewer.wrong, 0);
        assert_int_equal(viewer.width, clips[i].width);
        assert_int_equal(viewer.height, clips[i].height);
        assert_string_equal(stats.codec, clips[i].codec);
        assert_int_equal(stats.decoded, 45);
        assert_int_equal(stats.skipped, 0);
        gallery_fini(&gallery);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_frame_of_each_codec_arrives_and_shows_what_it_should),
    };
    return cmocka_run_group_tests_name("integration_camera_clips", tests, NULL, NULL);
}

/* Single pictures over HTTP, as a source like any other. */
#include "cmocka_all.h"

#include "stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void begin_with(const char *file)
{
    server_start(&server, "snapshot_server.py", clip(file), NULL);
    gallery_init(&gallery);
}

static int begin(void **state)
{
    begin_with("still.jpg");
    return 0;
}

enum { SHORT_STALL_MS = 1000, LONG_STALL_MS = 60000 };

static void open_path(struct viewer *viewer, const char *path, int interval_ms, int stall_ms)
{
    const struct camera_options options = {
        .interval_ms = interval_ms, .stall_ms = stall_ms, .open_ms = 4000};

    stage_open(viewer, &server, "http://viewer:canary7@", path, &options);
}

static void pictures_are_asked_for_once_for_all_and_come_as_frames(void **state)
{
    struct viewer first = {.check = CHECK_SHAPE}, second = {.check = CHECK_SHAPE};

    open_path(&first, "still", 50, SHORT_STALL_MS);
    open_path(&second, "still", 50, SHORT_STALL_MS);
    viewer_run_frames(&first, 10);
    viewer_run_frames(&second, 1);
    assert_string_equal(viewer_stats(&first).codec, "jpeg");
    assert_int_equal(viewer_stats(&first).width, 320);
    assert_int_equal(first.wrong, 0);
    assert_int_equal(second.wrong, 0);
    /* Each that was asked for is decoded, once, whether or not a newer one overtook it. */
    const unsigned asked = server_count(&server, "get still");
    viewer_run_frames(&first, 1);
    assert_in_range(asked, 10, viewer_stats(&first).counts.decoded + 1);
}

static void a_long_interval_is_neither_a_stall_nor_hurried(void **state)
{
    enum { EVERY_MS = 6500 };
    struct viewer viewer = {0};
    instant begun = clock_now();

    open_path(&viewer, "still", EVERY_MS, SHORT_STALL_MS);
    viewer_run_frames(&viewer, 2);
    assert_int_equal(viewer.offlines, 0);
    unsigned asked = server_count(&server, "get still");
    assert_in_range(asked, 2, 1 + instant_since(clock_now(), begun).ns / SPAN_MS(EVERY_MS).ns);
}

static void a_picture_that_follows_a_late_one_is_shown_as_well(void **state)
{
    struct viewer viewer = {0};

    open_path(&viewer, "uneven", 400, LONG_STALL_MS);
    viewer_run_frames(&viewer, 4);
    const struct camera_stats stats = viewer_stats(&viewer);
    assert_int_equal(stats.counts.decoded, viewer.frames + stats.skipped);
}

/* Decoded into the ring, or elsewhere and converted, of even and odd sizes. */
static void every_kind_of_picture_is_shown(void **state)
{
    static const char *const files[] = {"odd420.jpg", "odd422.jpg", "odd444.jpg"};

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct viewer viewer = {.check = CHECK_SHAPE};

        (void)stage_end(NULL);
        begin_with(files[i]);
        open_path(&viewer, "still", 50, SHORT_STALL_MS);
        viewer_run_frames(&viewer, 5);
        assert_int_equal(viewer.wrong, 0);
        assert_int_equal(viewer.width, 321);
        assert_int_equal(viewer.height, 241);
    }
}

/* By basic authentication and by digest. */
static void a_password_is_given_and_shown_nowhere(void **state)
{
    static const char *const paths[] = {"secret", "digest"};
    struct viewer viewers[2] = {{.check = CHECK_SHAPE}, {.check = CHECK_SHAPE}};

    for (int i = 0; i < 2; i++) {
        open_path(&viewers[i], paths[i], 50, LONG_STALL_MS);
        viewer_run_frames(&viewers[i], 3);
        assert_int_equal(viewers[i].wrong, 0);
    }
    server_end(&server);
    AWAIT_IN(&gallery, !viewers[0].is_online);
    assert_true(gallery_logged(&gallery, "camera-offline") > 0);
    assert_int_equal(gallery_logged(&gallery, "canary"), 0);
}

static void a_camera_that_lies_is_offline_with_the_reason(void **state)
{
    static const struct {
        const char *path, *reason;
        int stall_ms;
    } rows[] = {
        {"missing", "404", LONG_STALL_MS},       {"redirect", "302", LONG_STALL_MS},
        {"words", "no JPEG", LONG_STALL_MS},     {"cut", "no JPEG", LONG_STALL_MS},
        {"giant", "65500x65500", LONG_STALL_MS}, {"endless", "above", LONG_STALL_MS},
        {"slow", "Timeout", SHORT_STALL_MS},     {"drip", "Timeout", SHORT_STALL_MS},
        {"chunk", "above", LONG_STALL_MS},       {"chunks", "receiving", LONG_STALL_MS},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct viewer viewer = {0};

        open_path(&viewer, rows[i].path, 50, rows[i].stall_ms);
        stage_run_failed(&viewer, rows[i].reason);
        assert_int_equal(viewer.frames, 0);
        viewer_close(&viewer);
    }
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, stage_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(pictures_are_asked_for_once_for_all_and_come_as_frames),
        CASE(a_long_interval_is_neither_a_stall_nor_hurried),
        CASE(a_picture_that_follows_a_late_one_is_shown_as_well),
        CASE(every_kind_of_picture_is_shown),
        CASE(a_password_is_given_and_shown_nowhere),
        CASE(a_camera_that_lies_is_offline_with_the_reason),
    };
    return cmocka_run_group_tests_name("integration_camera_snapshot", tests, NULL, NULL);
}

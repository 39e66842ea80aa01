/* Cameras, clips and children that lie: one camera is offline, and nothing else happens. */
#include "cmocka_all.h"

#include "lib/process.h"
#include "stage.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

enum {
    CLIP_BYTES_MAX = 1 << 20,
    FLIPPED = 6,
    CUT = 4,
    HOSTILE_MAX = 16,
    DIALS_MAX = 16, /* of one try to open a camera: STREAM_DIALS_MAX */
    CHALLENGES_MAX = 4,
};

static const struct camera_options hasty = {.stall_ms = 400, .open_ms = 800};

static int begin(void **state)
{
    server_start(&server, "rtsp_faults.py", clip("rects.h264"), NULL);
    gallery_init(&gallery);
    return 0;
}

static void open_at(struct viewer *viewer, const struct server *at, const char *path,
                    const struct camera_options *options)
{
    stage_open(viewer, at, "rtsp://u:canary@", path, options);
}

struct tries {
    const char *const *names;
    struct viewer *viewers;
    size_t count;
    uint64_t restarts;
};

/* Closes each that was tried `restarts` times again: the quick ones would begin a hundred children
 * until the slowest is through. */
static bool are_tried(const struct tries *tries)
{
    size_t left = 0;

    for (size_t i = 0; i < tries->count; i++) {
        struct viewer *viewer = &tries->viewers[i];
        struct camera_stats stats = {0};
        if (viewer->camera != NULL) {
            stats = viewer_stats(viewer);
            left++;
        }
        if (stats.restarts >= tries->restarts) {
            print_message("%-12s %u frames, %s\n", tries->names[i], viewer->frames,
                          stats.last_error);
            assert_string_not_equal(stats.last_error, "");
            assert_null(strstr(stats.last_error, "canary"));
            viewer_close(viewer);
        }
    }
    return left == 0;
}

/* Cameras that are opened at once, of tests/detector/rtsp_faults.py; NULL ends a row. */
static const char *const lies[][HOSTILE_MAX] = {
    {"garbage", "silent", "drop", "huge", "endless", "redirect", "circle", "chase", "nowhere",
     "drip", "line", "nul", "status", "reset", "broken"},
    {"end-describe", "end-setup", "end-play", "end-head", "end-body", "negative", "channels",
     "datagrams", "trash-setup", "trash-play", "babble"},
    {"audio", "blank", "codec", "crowd", "sets", "lines", "text"},
    {"midstall", "noise", "lengths", "zeros", "vast", "bare", "mural"},
};

/* Opens the cameras of a row beside one that goes on without losing a picture. */
static void lie(const char *const *names)
{
    struct server other;
    struct viewer viewers[HOSTILE_MAX] = {0}, witness = {.check = CHECK_SEQUENCE};
    struct tries tries = {names, viewers, 0, 2};

    server_start(&other, "rtsp_faults.py", clip("rects.h264"), NULL);
    open_at(&witness, &other, "healthy", NULL);
    viewer_run_frames(&witness, 5);
    for (; tries.count < HOSTILE_MAX && names[tries.count] != NULL; tries.count++) {
        open_at(&viewers[tries.count], &server, names[tries.count], &hasty);
    }
    AWAIT_IN(&gallery, are_tried(&tries));
    viewer_run_frames(&witness, 15);
    assert_int_equal(witness.wrong, 0); /* every picture between two that were seen was decoded */
    assert_int_equal(witness.offlines, 0);
    assert_int_equal(viewer_stats(&witness).counts.dropped, 0);
    viewer_close(&witness);
    server_end(&other);
}

static void servers_that_lie_cost_their_own_camera_and_no_other(void **state)
{
    for (size_t row = 0; row < sizeof(lies) / sizeof(lies[0]); row++) {
        lie(lies[row]);
    }
    assert_int_equal(gallery_logged(&gallery, "canary"), 0);
}

/* What a network does to packets, and one that floods, each open at the same time. */
static void damage_on_the_way_leaves_a_stream(void **state)
{
    static const char *const names[] = {"lossy",   "double", "swapped",     "leaps", "renamed",
                                        "reports", "burst",  "sessionless", "muxed", "sizes"};
    enum { COUNT = sizeof(names) / sizeof(names[0]), FRAMES = 30, SIZES = 10 };
    struct viewer viewers[COUNT] = {0};

    for (int i = 0; i < COUNT; i++) {
        open_at(&viewers[i], &server, names[i], NULL);
    }
    for (int i = 0; i < COUNT; i++) {
        if (viewers[i].frames < FRAMES) {
            viewer_run_frames(&viewers[i], FRAMES - viewers[i].frames);
        }
        if (viewers[i].offlines > 0) {
            fail_msg("%s: %s", names[i], viewer_stats(&viewers[i]).last_error);
        }
    }
    assert_true(viewers[COUNT - 1].sizes > SIZES);
}

/* When FFmpeg's reader is interrupted, it still hands out the picture that it was putting together.
 * To show that as new would begin the wait anew. */
static void a_stream_that_falls_silent_is_offline_without_another_picture(void **state)
{
    /* As rtsp_faults.py sends; of the last it is not known that it is whole. */
    enum { PICTURES = 20 };
    struct viewer viewer = {.check = CHECK_SHAPE};

    open_at(&viewer, &server, "hush", &(struct camera_options){.stall_ms = 1500});
    AWAIT_IN(&gallery, viewer.is_online);
    AWAIT_IN(&gallery, !viewer.is_online);
    stage_run_failed(&viewer, "no picture came within 1500 ms");
    assert_int_equal(viewer.wrong, 0);
    assert_int_equal(viewer_stats(&viewer).counts.decoded, PICTURES - 1);
}

static void the_step_and_the_fault_of_a_camera_are_named(void **state)
{
    /* A part of a name has at most 63 bytes, so nobody is asked for that one. */
    static const struct {
        const char *scheme, *path, *error;
    } faults[] = {
        {"rtsp://", "circle", "open: the camera redirects again and again"},
        {"rtsp://", "chase", "open: the camera redirects again and again"},
        {"rtsp://", "reset", "open: the camera's answer is missing"},
        {"rtsp://", "babble", "open: the camera's answer is missing"},
        {"rtsp://", "trash-setup", "open: the camera's answer is missing"},
        {"rtsp://", "trash-play", "open: the camera's answer is missing"},
        {"rtsp://", "status", "open: Server returned 5XX"},
        {"rtsp://", "transport", "open: the camera sends no media over tcp; see --rtsp-transport"},
        {"rtsp://u:canary@", "challenge", "than Basic or Digest with MD5; next try"},
        {"rtsp://", "mural", "picture of 8400x4500: sides must be 1 to 8192"},
        {"rtsp://", "audio", "the camera sends no video"},
        {"rtsp://", "codec", "decoder: this FFmpeg has none for the stream"},
        {"rtsps://", "canary", "open: TLS failed"},
        {"rtsp://a234567890123456789012345678901234567890123456789012345678901234567890.", "canary",
         "open: the host's name is not known"},
    };

    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        struct viewer viewer = {0};

        stage_open(&viewer, &server, faults[i].scheme, faults[i].path, NULL);
        stage_run_failed(&viewer, faults[i].error);
        assert_in_range(server_count(&server, "circle"), 2, DIALS_MAX);
        viewer_close(&viewer);
    }
    /* As many wrong passwords as a camera takes before it locks the user out. */
    assert_in_range(server_count(&server, "challenge"), 1, CHALLENGES_MAX);
}

/* However long its camera may be silent. */
static void a_child_that_stands_still_or_is_killed_is_replaced(void **state)
{
    static const struct {
        int signal;
        const char *reason;
    } rows[] = {{SIGSTOP, "does not answer"}, {SIGKILL, "killed by signal 9"}};
    const struct camera_options patient = {.stall_ms = 600000};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct viewer viewer = {.check = CHECK_SHAPE};
        struct camera_stats before;

        open_at(&viewer, &server, "healthy", &patient);
        viewer_run_frames(&viewer, 3);
        before = viewer_stats(&viewer);
        assert_int_equal(kill(before.pid, rows[i].signal), 0);
        AWAIT_IN(&gallery, !viewer.is_online);
        stage_run_failed(&viewer, rows[i].reason);
        AWAIT_IN(&gallery, viewer.is_online);
        viewer_run_frames(&viewer, 3);
        assert_int_not_equal(viewer_stats(&viewer).pid, before.pid);
        assert_true(viewer_stats(&viewer).counts.decoded > before.counts.decoded);
        assert_int_equal(viewer.wrong, 0);
        viewer_close(&viewer);
    }
}

/* Its broker dies after it. */
static void what_a_killed_child_leaves_to_process_1_of_a_container_is_waited_for(void **state)
{
    struct viewer viewer = {0};
    pid_t broker = 0;

    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    open_at(&viewer, &server, "silent", &hasty);
    AWAIT_IN(&gallery, (broker = viewer_broker(&viewer)) != 0);
    assert_int_equal(kill(viewer_stats(&viewer).pid, SIGKILL), 0);
    AWAIT_IN(&gallery, kill(broker, 0) != 0);
}

/* Plays it; false: it failed. */
static bool play_damaged(const char *path)
{
    const struct camera_options options = {.is_lossless = true, .stall_ms = 5000, .open_ms = 5000};
    struct gallery own;
    struct viewer viewer = {0};

    gallery_init(&own);
    viewer_open(&viewer, &own, path, &options);
    AWAIT_IN(&own, viewer.is_ended || viewer_stats(&viewer).last_error[0] != '\0');
    print_message("%s\n", viewer_stats(&viewer).last_error);
    gallery_fini(&own);
    return viewer.is_ended;
}

static void clips_that_are_cut_or_have_flipped_bits_come_to_an_end(void **state)
{
    static const char *const names[] = {"rects.mp4", "bframes.mp4", "rects265.mp4",
                                        "mjpeg.avi", "rects.h264",  "rects265.h265"};
    static uint8_t whole[CLIP_BYTES_MAX], damaged[CLIP_BYTES_MAX];
    char folder[128], path[160];
    unsigned ended = 0;
    uint32_t seed = 20;

    process_make_folder(folder, sizeof(folder));
    (void)snprintf(path, sizeof(path), "%s/clip", folder);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t bytes = process_read_file(clip(names[i]), whole, sizeof(whole));
        for (size_t cut = 1; cut <= CUT; cut++) {
            process_write_file(path, whole, bytes * cut / (CUT + 1));
            ended += play_damaged(path);
        }
        for (int round = 0; round < FLIPPED; round++) {
            memcpy(damaged, whole, bytes);
            for (int flips = 0; flips < 1 << (2 * round); flips++) {
                seed = seed * 1664525 + 1013904223;
                damaged[(seed >> 4) % bytes] ^= (uint8_t)(1 << (seed >> 29));
            }
            process_write_file(path, damaged, bytes);
            ended += play_damaged(path);
        }
    }
    /* The damage is neither nothing nor all. */
    assert_in_range(ended, 1, (CUT + FLIPPED) * sizeof(names) / sizeof(names[0]) - 1);
    process_remove_folder(folder);
}

static void a_child_that_was_taken_over_is_killed_and_nothing_leaks(void **state)
{
    static const char *const names[] = {"long", "noise", "many-fds", "mute", "frames"};
    enum { COUNT = sizeof(names) / sizeof(names[0]) };
    unsigned before = process_count_descriptors();
    struct gallery own;
    struct viewer viewers[COUNT] = {0};
    struct tries tries = {names, viewers, COUNT, 3};
    char url[128];

    gallery_init_with(&own, BATON_LIAR_PROGRAM);
    for (int i = 0; i < COUNT; i++) {
        (void)snprintf(url, sizeof(url), "rtsp://127.0.0.1/%s", names[i]);
        viewer_open(&viewers[i], &own, url, &hasty);
    }
    AWAIT_IN(&own, are_tried(&tries));
    gallery_fini(&own);
    assert_int_equal(process_count_descriptors(), before);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, stage_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(servers_that_lie_cost_their_own_camera_and_no_other),
        CASE(damage_on_the_way_leaves_a_stream),
        CASE(a_stream_that_falls_silent_is_offline_without_another_picture),
        CASE(the_step_and_the_fault_of_a_camera_are_named),
        CASE(a_child_that_stands_still_or_is_killed_is_replaced),
        CASE(what_a_killed_child_leaves_to_process_1_of_a_container_is_waited_for),
        cmocka_unit_test(clips_that_are_cut_or_have_flipped_bits_come_to_an_end),
        cmocka_unit_test(a_child_that_was_taken_over_is_killed_and_nothing_leaks),
    };
    return cmocka_run_group_tests_name("integration_camera_hostile", tests, NULL, NULL);
}

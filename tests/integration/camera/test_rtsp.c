/* Streams of a server that is not ours: GStreamer's. */
#include "cmocka_all.h"

#include "base/clock.h"
#include "lib/process.h"
#include "stage.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int begin(void **state)
{
    server_start_streams(&server, 0, NULL);
    gallery_init(&gallery);
    return 0;
}

static void restart_cameras(const char *auth)
{
    server_end(&server);
    server_start_streams(&server, 0, auth);
}

/* Joining between two key pictures included: the second camera does so. */
static void streams_of_each_codec_arrive_whole_over_tcp_and_udp(void **state)
{
    static const char *const names[] = {"cam", "hevc", "jpeg"};

    for (int i = 0; i < 6; i++) {
        const struct camera_options options = {.uses_udp = i >= 3};
        struct viewer viewer = {.check = CHECK_SHAPE};

        print_message("%s\n", names[i % 3]);
        stage_open(&viewer, &server, "rtsp://", names[i % 3], &options);
        viewer_run_frames(&viewer, 20);
        assert_int_equal(viewer.wrong, 0);
        assert_int_equal(viewer.width, 320);
        assert_int_equal(viewer.onlines, 1);
        assert_int_equal(viewer.offlines, 0);
        assert_int_equal(viewer_stats(&viewer).restarts, 0);
        viewer_close(&viewer);
    }
}

static bool is_refused(const struct viewer *viewer)
{
    return strstr(viewer_stats(viewer).last_error, "refuses name or password") != NULL;
}

static void a_password_is_given_and_shown_nowhere(void **state)
{
    struct viewer right = {0}, wrong = {0};
    char path[64], text[4096];
    ssize_t bytes;
    int fd;

    restart_cameras("auth=viewer:canary7");
    stage_open(&right, &server, "rtsp://viewer:canary7@", "cam?key=canary7", NULL);
    stage_open(&wrong, &server, "rtsp://viewer:canary8@", "cam", NULL);
    viewer_run_frames(&right, 5);
    const struct camera_stats stats = viewer_stats(&right);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof(path), "/proc/%d/%s", stats.pid, i ? "environ" : "cmdline");
        fd = open(path, O_RDONLY | O_CLOEXEC);
        bytes = read(fd, text, sizeof(text));
        assert_true(i == 1 || bytes > 0); /* anybody may read the command line */
        assert_true(bytes < 0 || memmem(text, (size_t)bytes, "canary", 6) == NULL);
        (void)close(fd);
    }
    assert_null(strstr(stats.url, "canary"));
    AWAIT_IN(&gallery, is_refused(&wrong));
    process_end(server.pid); /* provokes what is said about it */
    AWAIT_IN(&gallery, !right.is_online);
    assert_int_equal(wrong.frames, 0);
    assert_non_null(strstr(viewer_stats(&wrong).last_error, "open: "));
    assert_true(gallery_logged(&gallery, "the camera refuses name or password") > 0);
    assert_true(gallery_logged(&gallery, "camera-offline") > 0);
    assert_int_equal(gallery_logged(&gallery, "canary") + gallery_logged(&gallery, "viewer"), 0);
}

enum { LOGIN_URLS = 5 };

static bool is_held(const struct viewer *viewer)
{
    return strncmp(viewer_stats(viewer).last_error, "not tried: ", 11) == 0;
}

/* Each but the one that was refused last; earlier some wait, too, on a slow machine. */
static bool are_held(const struct viewer *viewers)
{
    unsigned held = 0;

    for (int i = 0; i < LOGIN_URLS; i++) {
        held += is_held(&viewers[i]);
    }
    return held == LOGIN_URLS - 1 && gallery_logged(&gallery, "refuses name or password") >= 4;
}

/* Streams, and snapshots at another port: a camera that locks a user out counts them together. */
static void a_password_that_is_wrong_is_wrong_for_all_urls_of_a_camera(void **state)
{
    static const char *const names[] = {"cam", "hevc", "jpeg", "resized"};
    struct viewer wrong[LOGIN_URLS] = {{0}}, right = {0};
    struct server snapshots;

    restart_cameras("auth=viewer:canary7");
    server_start(&snapshots, "snapshot_server.py", clip("still.jpg"), NULL);
    stage_open(&wrong[0], &snapshots, "http://viewer:canary8@", "secret", NULL);
    for (int i = 1; i < LOGIN_URLS; i++) {
        stage_open(&wrong[i], &server, "rtsp://viewer:canary8@", names[i - 1], NULL);
    }
    AWAIT_IN(&gallery, are_held(wrong));
    /* The fifth comes after a long pause. */
    assert_in_range(gallery_logged(&gallery, "refuses name or password"), 4, 2 * LOGIN_URLS - 1);
    stage_open(&right, &server, "rtsp://viewer:canary7@", "cam", NULL);
    viewer_run_frames(&right, 1);
    server_end(&snapshots);
}

/* As a user has them who may see streams, and no snapshots. */
static void refusals_of_some_urls_do_not_hold_others_up_that_had_the_password(void **state)
{
    static const char *const names[] = {"cam", "hevc", "jpeg"};
    struct viewer right = {0}, refused[3] = {{0}};
    struct server other;
    int port;

    restart_cameras("auth=viewer:canary7");
    port = server.port;
    server_start_streams(&other, 0, "auth=viewer:other");
    stage_open(&right, &server, "rtsp://viewer:canary7@", "cam", NULL);
    viewer_run_frames(&right, 1);
    for (int i = 0; i < 3; i++) {
        stage_open(&refused[i], &other, "rtsp://viewer:canary7@", names[i], NULL);
        AWAIT_IN(&gallery, is_refused(&refused[i]));
    }
    server_end(&server);
    AWAIT_IN(&gallery, !right.is_online);
    server_start_streams(&server, port, "auth=viewer:canary7");
    AWAIT_IN(&gallery, right.is_online || is_held(&right));
    assert_true(right.is_online);
    server_end(&other);
}

enum { FAREWELL_TURNS_MAX = 60 };

static bool has_said_goodbye(void)
{
    return server_count(&server, "teardown cam") > 0;
}

/* It is asked for media over UDP, too, which would not be encrypted. */
static void a_password_and_the_goodbye_go_through_tls(void **state)
{
    char folder[128], tls[160];
    struct camera_options options = {.uses_udp = true};
    instant limit;

    process_make_folder(folder, sizeof(folder));
    assert_int_equal(chmod(folder, 0755), 0);
    (void)snprintf(options.ca_file, sizeof(options.ca_file), "%s/ca.pem", folder);
    (void)snprintf(tls, sizeof(tls), "tls=%s", folder);
    server_end(&server);
    server_start(&server, "rtsp_server.py", "0", "auth=viewer:canary7", tls,
                 "cam=" BATON_CLIPS "/rects.h264", NULL);
    /* A process that says no goodbye in its time is ended: on a busy machine it gets more turns. */
    for (int turns = 0; !has_said_goodbye(); turns++) {
        struct viewer viewer = {.check = CHECK_SHAPE};
        assert_true(turns < FAREWELL_TURNS_MAX);
        stage_open(&viewer, &server, "rtsps://viewer:canary7@", "cam", &options);
        viewer_run_frames(&viewer, 20);
        assert_int_equal(viewer.wrong, 0);
        assert_int_equal(viewer.offlines, 0);
        viewer_close(&viewer);
        limit = instant_add(clock_now(), SPAN_MS(2000));
        AWAIT_IN(&gallery, has_said_goodbye() || !instant_before(clock_now(), limit));
    }
    process_remove_folder(folder);
}

static void a_connected_stream_has_its_second_fence_and_no_broker_but_for_udp(void **state)
{
    for (int i = 0; i < 2; i++) {
        const struct camera_options options = {.uses_udp = i == 1};
        struct viewer viewer = {0};

        stage_open(&viewer, &server, "rtsp://", "cam", &options);
        viewer_run_frames(&viewer, 5);
        assert_int_equal(viewer_fences(&viewer), 3); /* with that for the broker */
        if (options.uses_udp) {
            assert_true(viewer_broker(&viewer) > 0);
        } else {
            AWAIT_IN(&gallery, viewer_broker(&viewer) == 0);
        }
        viewer_close(&viewer);
    }
}

enum { TRIES = 6 };

/* The pauses that were asked for so far. Returns how many they are. */
static unsigned read_pauses(unsigned long pauses_ms[static 2 * TRIES])
{
    char *log = gallery_log(&gallery);
    unsigned count = 0;

    for (const char *at = log; (at = strstr(at, "retry_ms=")) != NULL; at++) {
        assert_in_range(count, 0, 2 * TRIES - 1);
        pauses_ms[count++] = strtoul(at + strlen("retry_ms="), NULL, 10);
    }
    free(log);
    return count;
}

static void a_server_that_is_killed_and_comes_back_gives_frames_again(void **state)
{
    struct viewer viewer = {.check = CHECK_SHAPE};
    unsigned long pauses_ms[2 * TRIES];
    int port = server.port;
    unsigned count;

    stage_open(&viewer, &server, "rtsp://", "cam", NULL);
    viewer_run_frames(&viewer, 5);
    server_end(&server);
    AWAIT_IN(&gallery, !viewer.is_online);
    AWAIT_IN(&gallery, viewer_stats(&viewer).restarts >= TRIES);
    count = read_pauses(pauses_ms);
    assert_in_range(count, TRIES, TRIES + 1);
    for (unsigned i = 0; i < count; i++) { /* doubling from 50 to 500 ms, less up to a half of it */
        unsigned most = i < 4 ? 50U << i : 500;
        assert_in_range(pauses_ms[i], most / 2, most);
    }
    server_start_streams(&server, port, NULL);
    AWAIT_IN(&gallery, viewer.is_online);
    /* The first try that could succeed did. */
    assert_in_range(viewer_stats(&viewer).restarts, TRIES, TRIES + 1);
    viewer_run_frames(&viewer, 5);
    assert_int_equal(viewer.wrong, 0);
    server_end(&server); /* The next pause is short again: it was online. */
    AWAIT_IN(&gallery, !viewer.is_online);
    assert_in_range(pauses_ms[read_pauses(pauses_ms) - 1], 25, 200);
}

static void a_change_of_resolution_goes_through_without_a_break(void **state)
{
    struct viewer viewer = {.check = CHECK_SHAPE, .holds = RING_HELD_MAX};

    stage_open(&viewer, &server, "rtsp://", "resized", NULL);
    viewer_run_frames(&viewer, 1);
    viewer_let_go(&viewer, 2); /* one is held over the change, in memory of the last size */
    AWAIT_IN(&gallery, viewer.sizes >= 2);
    viewer_run_frames(&viewer, 5);
    assert_int_equal(viewer.offlines, 0);
    assert_int_equal(viewer.wrong, 0);
    viewer_let_go(&viewer, 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, stage_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(streams_of_each_codec_arrive_whole_over_tcp_and_udp),
        CASE(a_password_is_given_and_shown_nowhere),
        CASE(a_password_that_is_wrong_is_wrong_for_all_urls_of_a_camera),
        CASE(refusals_of_some_urls_do_not_hold_others_up_that_had_the_password),
        CASE(a_password_and_the_goodbye_go_through_tls),
        CASE(a_connected_stream_has_its_second_fence_and_no_broker_but_for_udp),
        CASE(a_server_that_is_killed_and_comes_back_gives_frames_again),
        CASE(a_change_of_resolution_goes_through_without_a_break),
    };
    return cmocka_run_group_tests_name("integration_camera_rtsp", tests, NULL, NULL);
}

/* Streams of a server that is not ours: GStreamer's. */
#include "cmocka_all.h"

#include "base/clock.h"
#include "lib/process.h"
#include "server.h"
#include "viewer.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char url_text[256];

static const char *url_of(const struct server *server, const char *credentials, const char *name)
{
    (void)snprintf(url_text, sizeof(url_text), "rtsp://%s127.0.0.1:%d/%s", credentials,
                   server->port, name);
    return url_text;
}

/* A camera word "NAME=CLIP". */
static const char *word(char *ret, size_t ret_bytes, const char *name, const char *file)
{
    (void)snprintf(ret, ret_bytes, "%s=%s", name, clip(file));
    return ret;
}

/* On `port`, or one that the kernel chooses. */
static void start_cameras(struct server *server, int port, const char *auth)
{
    static const char *const names[] = {"cam", "hevc", "jpeg", "resized"};
    static const char *const files[] = {"rects.h264", "rects265.h265", "rects.mjpeg",
                                        "resized.h264"};
    char words[4][600], number[16];
    const char *arguments[SERVER_ARGUMENTS_MAX] = {number};
    int count = 1;

    (void)snprintf(number, sizeof(number), "%d", port);
    for (int i = 0; i < 4; i++) {
        arguments[count++] = word(words[i], sizeof(words[i]), names[i], files[i]);
    }
    if (auth != NULL) {
        arguments[count++] = auth;
    }
    server_start(server, "rtsp_server.py", arguments);
}

static struct gallery gallery;
static struct server server;

static int begin(void **state)
{
    (void)state;
    start_cameras(&server, 0, NULL);
    gallery_init(&gallery);
    return 0;
}

static int end(void **state)
{
    (void)state;
    gallery_fini(&gallery);
    server_end(&server);
    return 0;
}

static void restart_cameras(const char *auth)
{
    server_end(&server);
    start_cameras(&server, 0, auth);
}

struct heard {
    struct server *server;
    const char *line;
    unsigned count;
};

static bool has_heard(const void *userdata)
{
    const struct heard *heard = userdata;

    return server_count(heard->server, heard->line) >= heard->count;
}

/* Joining between two key pictures included: the second camera does so. */
static void streams_of_each_codec_arrive_whole_over_tcp_and_udp(void **state)
{
    static const char *const names[] = {"cam", "hevc", "jpeg"};

    (void)state;
    for (int i = 0; i < 6; i++) {
        const struct camera_options options = {.uses_udp = i >= 3};
        struct viewer viewer = {.check = CHECK_SHAPE};
        struct camera_stats stats;

        viewer_open(&viewer, &gallery, url_of(&server, "", names[i % 3]), &options);
        viewer_run_frames(&viewer, 20);
        camera_stats(viewer.camera, &stats);
        print_message("%s: %u frames, %u wrong, %s\n", names[i % 3], viewer.frames, viewer.wrong,
                      stats.codec);
        assert_int_equal(viewer.wrong, 0);
        assert_int_equal(viewer.width, 320);
        assert_int_equal(viewer.onlines, 1);
        assert_int_equal(viewer.offlines, 0);
        assert_int_equal(stats.restarts, 0);
        viewer_close(&viewer);
    }
}

static void two_subscriptions_open_the_camera_once_and_the_last_says_goodbye(void **state)
{
    struct viewer first = {0}, second = {0};
    struct heard goodbye = {&server, "teardown cam", 1};
    /* A server that a busy machine keeps still for a while must not be opened anew. */
    const struct camera_options options = {.stall_ms = 60000};

    (void)state;
    viewer_open(&first, &gallery, url_of(&server, "", "cam"), &options);
    viewer_open(&second, &gallery, url_text, &options);
    viewer_run_frames(&second, 3);
    assert_int_equal(viewer_stats(&first).subscribers, 2);
    viewer_close(&first);
    viewer_run_frames(&second, 2);
    assert_int_equal(server_count(&server, "play cam"), 1);
    assert_int_equal(server_count(&server, "teardown cam"), 0);
    viewer_close(&second);
    gallery_run_until(&gallery, has_heard, &goodbye);
}

static bool is_refused(const void *userdata)
{
    const struct viewer *viewer = userdata;

    return strstr(viewer_stats(viewer).last_error, "refuses name or password") != NULL;
}

static void a_password_is_given_and_shown_nowhere(void **state)
{
    struct viewer right = {0}, wrong = {0};
    struct camera_stats stats;
    char path[64], text[4096], *log;
    FILE *file;
    size_t bytes;

    (void)state;
    restart_cameras("auth=viewer:canary7");
    viewer_open(&right, &gallery, url_of(&server, "viewer:canary7@", "cam?key=canary7"), NULL);
    viewer_open(&wrong, &gallery, url_of(&server, "viewer:canary8@", "cam"), NULL);
    viewer_run_frames(&right, 5);
    camera_stats(right.camera, &stats);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof(path), "/proc/%d/%s", stats.pid, i ? "environ" : "cmdline");
        file = fopen(path, "re");
        bytes = file != NULL ? fread(text, 1, sizeof(text), file) : 0;
        assert_true(i == 1 || bytes > 0); /* anybody may read the command line */
        assert_null(memmem(text, bytes, "canary", 6));
        if (file != NULL) {
            (void)fclose(file);
        }
    }
    assert_null(strstr(stats.url, "canary"));
    gallery_run_until(&gallery, is_refused, &wrong);
    process_end(server.pid); /* provokes what is said about it */
    gallery_run_until(&gallery, viewer_is_offline, &right);
    camera_stats(wrong.camera, &stats);
    assert_int_equal(wrong.frames, 0);
    assert_non_null(strstr(stats.last_error, "open: "));
    log = gallery_log(&gallery);
    assert_non_null(strstr(log, "the camera refuses name or password"));
    assert_non_null(strstr(log, "camera-offline"));
    assert_null(strstr(log, "canary"));
    assert_null(strstr(log, "viewer"));
    free(log);
}

/* Some cameras lock a user out after five. */
static void a_refused_password_is_tried_seldom_and_another_one_at_once(void **state)
{
    struct viewer wrong = {0}, none = {0}, absent = {.tries = 8}, right = {0};
    struct camera_stats stats;

    (void)state;
    restart_cameras("auth=viewer:canary7");
    viewer_open(&wrong, &gallery, url_of(&server, "viewer:canary8@", "cam"), NULL);
    gallery_run_until(&gallery, is_refused, &wrong);
    viewer_open(&none, &gallery, url_of(&server, "", "cam"), NULL);
    gallery_run_until(&gallery, is_refused, &none);
    assert_non_null(strstr(viewer_stats(&none).last_error, "; the URL has none"));
    viewer_open(&absent, &gallery, url_of(&server, "viewer:canary7@", "absent"), NULL);
    gallery_run_until(&gallery, viewer_has_tried, &absent);
    camera_stats(wrong.camera, &stats);
    assert_in_range(stats.restarts, 0, 3); /* the first try is none of them */
    assert_non_null(strstr(stats.last_error, "; next try in "));
    viewer_close(&wrong);
    viewer_open(&right, &gallery, url_of(&server, "viewer:canary7@", "cam"), NULL);
    viewer_run_frames(&right, 1);
}

enum { LOGIN_URLS = 5 };

/* Each but the one that was refused last. */
static bool are_held(const void *userdata)
{
    const struct viewer *viewers = userdata;
    unsigned held = 0;

    for (int i = 0; i < LOGIN_URLS; i++) {
        held += strncmp(viewer_stats(&viewers[i]).last_error, "not tried: ", 11) == 0;
    }
    return held == LOGIN_URLS - 1;
}

/* Streams, and snapshots at another port: a camera that locks a user out counts them together. */
static void a_password_that_is_wrong_is_wrong_for_all_urls_of_a_camera(void **state)
{
    static const char *const names[] = {"cam", "hevc", "jpeg", "resized"};
    const char *arguments[] = {clip("still.jpg"), NULL};
    struct viewer wrong[LOGIN_URLS] = {{0}}, right = {0};
    struct server snapshots;
    unsigned tries = 0;
    char url[160], *log;

    (void)state;
    restart_cameras("auth=viewer:canary7");
    server_start(&snapshots, "snapshot_server.py", arguments);
    (void)snprintf(url, sizeof(url), "http://viewer:canary8@127.0.0.1:%d/secret", snapshots.port);
    viewer_open(&wrong[0], &gallery, url, NULL);
    for (int i = 1; i < LOGIN_URLS; i++) {
        viewer_open(&wrong[i], &gallery, url_of(&server, "viewer:canary8@", names[i - 1]), NULL);
    }
    gallery_run_until(&gallery, are_held, wrong);
    log = gallery_log(&gallery);
    for (const char *at = log; (at = strstr(at, "refuses name or password")) != NULL; at++) {
        tries++;
    }
    free(log);
    assert_in_range(tries, 4, 2 * LOGIN_URLS - 1); /* the fifth comes after a long pause */
    viewer_open(&right, &gallery, url_of(&server, "viewer:canary7@", "cam"), NULL);
    viewer_run_frames(&right, 1);
    server_end(&snapshots);
}

static bool is_back_or_held(const void *userdata)
{
    const struct viewer *viewer = userdata;

    return viewer_is_online(viewer) ||
           strncmp(viewer_stats(viewer).last_error, "not tried: ", 11) == 0;
}

/* As a user has them who may see streams, and no snapshots. */
static void refusals_of_some_urls_do_not_hold_others_up_that_had_the_password(void **state)
{
    static const char *const names[] = {"cam", "hevc", "jpeg"};
    struct viewer right = {0}, refused[3] = {{0}};
    struct server other;
    int port;

    (void)state;
    restart_cameras("auth=viewer:canary7");
    port = server.port;
    start_cameras(&other, 0, "auth=viewer:other");
    viewer_open(&right, &gallery, url_of(&server, "viewer:canary7@", "cam"), NULL);
    viewer_run_frames(&right, 1);
    for (int i = 0; i < 3; i++) {
        viewer_open(&refused[i], &gallery, url_of(&other, "viewer:canary7@", names[i]), NULL);
        gallery_run_until(&gallery, is_refused, &refused[i]);
    }
    server_end(&server);
    gallery_run_until(&gallery, viewer_is_offline, &right);
    start_cameras(&server, port, "auth=viewer:canary7");
    gallery_run_until(&gallery, is_back_or_held, &right);
    assert_true(viewer_is_online(&right));
    server_end(&other);
}

enum { FAREWELL_TURNS_MAX = 60 };

struct farewell {
    struct heard goodbye;
    instant limit;
};

static bool is_goodbye_over(const void *userdata)
{
    const struct farewell *farewell = userdata;

    return has_heard(&farewell->goodbye) || !instant_before(clock_now(), farewell->limit);
}

/* It is asked for media over UDP, too, which would not be encrypted. */
static void a_password_and_the_goodbye_go_through_tls(void **state)
{
    char folder[128], ca[160], tls[160], camera[600];
    const char *arguments[] = {"0", "auth=viewer:canary7", tls, camera, NULL};
    const struct camera_options options = {.ca_file = ca, .uses_udp = true};
    struct farewell farewell = {.goodbye = {&server, "teardown cam", 1}};

    (void)state;
    process_make_folder(folder, sizeof(folder));
    assert_int_equal(chmod(folder, 0755), 0);
    (void)snprintf(ca, sizeof(ca), "%s/ca.pem", folder);
    (void)snprintf(tls, sizeof(tls), "tls=%s", folder);
    (void)word(camera, sizeof(camera), "cam", "rects.h264");
    server_end(&server);
    server_start(&server, "rtsp_server.py", arguments);
    (void)snprintf(url_text, sizeof(url_text), "rtsps://viewer:canary7@127.0.0.1:%d/cam",
                   server.port);
    /* A process that says no goodbye in its time is ended: on a busy machine it gets more turns. */
    for (int turns = 0; !has_heard(&farewell.goodbye); turns++) {
        struct viewer viewer = {.check = CHECK_SHAPE};
        assert_true(turns < FAREWELL_TURNS_MAX);
        viewer_open(&viewer, &gallery, url_text, &options);
        viewer_run_frames(&viewer, 20);
        assert_int_equal(viewer.wrong, 0);
        assert_int_equal(viewer.offlines, 0);
        viewer_close(&viewer);
        farewell.limit = instant_add(clock_now(), SPAN_MS(2000));
        gallery_run_until(&gallery, is_goodbye_over, &farewell);
    }
    process_remove_folder(folder);
}

static pid_t child_of(int pid)
{
    char path[64];
    int child = 0;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
    file = fopen(path, "re");
    assert_non_null(file);
    (void)!fscanf(file, "%d", &child);
    (void)fclose(file);
    return child;
}

static bool has_no_child(const void *userdata)
{
    return child_of(viewer_stats(userdata).pid) == 0;
}

static void a_connected_stream_has_no_broker_but_for_udp(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const struct camera_options options = {.uses_udp = i == 1};
        struct viewer viewer = {0};

        viewer_open(&viewer, &gallery, url_of(&server, "", "cam"), &options);
        viewer_run_frames(&viewer, 5);
        if (options.uses_udp) {
            assert_true(child_of(viewer_stats(&viewer).pid) > 0);
        } else {
            gallery_run_until(&gallery, has_no_child, &viewer);
        }
        viewer_close(&viewer);
    }
}

enum { TRIES = 6 };

/* Each pause that was asked for: doubling from 50 to 500 ms, less up to a half of it. */
static void assert_pauses(void)
{
    char *log = gallery_log(&gallery);
    unsigned count = 0;

    for (const char *at = log; (at = strstr(at, "camera-offline")) != NULL; at++) {
        unsigned most = count < 4 ? 50U << count : 500;
        const char *pause = strstr(at, "retry_ms=");
        assert_non_null(pause);
        assert_in_range(strtoul(pause + strlen("retry_ms="), NULL, 10), most / 2, most);
        count++;
    }
    assert_in_range(count, TRIES, TRIES + 1);
    free(log);
}

static unsigned long last_pause_ms(void)
{
    char *log = gallery_log(&gallery);
    const char *last = NULL;
    unsigned long pause_ms;

    for (const char *at = log; (at = strstr(at, "retry_ms=")) != NULL; at++) {
        last = at;
    }
    assert_non_null(last);
    pause_ms = strtoul(last + strlen("retry_ms="), NULL, 10);
    free(log);
    return pause_ms;
}

static void a_server_that_is_killed_and_comes_back_gives_frames_again(void **state)
{
    struct viewer viewer = {.check = CHECK_SHAPE, .tries = TRIES};
    struct camera_stats stats;
    int port = server.port;

    (void)state;
    viewer_open(&viewer, &gallery, url_of(&server, "", "cam"), NULL);
    viewer_run_frames(&viewer, 5);
    server_end(&server);
    gallery_run_until(&gallery, viewer_is_offline, &viewer);
    gallery_run_until(&gallery, viewer_has_tried, &viewer);
    assert_pauses();
    start_cameras(&server, port, NULL);
    gallery_run_until(&gallery, viewer_is_online, &viewer);
    camera_stats(viewer.camera, &stats);
    if (stats.restarts > TRIES + 1) { /* the first try that could succeed did not */
        fail_msg("%llu restarts:\n%s", (unsigned long long)stats.restarts, gallery_log(&gallery));
    }
    viewer_run_frames(&viewer, 5);
    assert_int_equal(viewer.wrong, 0);
    server_end(&server); /* The next pause is short again: it was online. */
    gallery_run_until(&gallery, viewer_is_offline, &viewer);
    assert_in_range(last_pause_ms(), 25, 200);
}

static void a_server_that_stalls_is_noticed_and_another_camera_is_not_touched(void **state)
{
    const struct camera_options options = {.stall_ms = 1000};
    struct server other;
    struct viewer viewer = {0}, witness = {0};

    (void)state;
    start_cameras(&other, 0, NULL);
    viewer_open(&viewer, &gallery, url_of(&server, "", "cam"), &options);
    viewer_open(&witness, &gallery, url_of(&other, "", "cam"), &options);
    viewer_run_frames(&viewer, 5);
    assert_int_equal(kill(server.pid, SIGSTOP), 0);
    gallery_run_until(&gallery, viewer_is_offline, &viewer);
    assert_int_equal(kill(server.pid, SIGCONT), 0);
    gallery_run_until(&gallery, viewer_is_online, &viewer);
    viewer_run_frames(&witness, 5);
    assert_int_equal(witness.offlines, 0);
    server_end(&other);
}

static void a_child_that_is_killed_is_replaced_and_another_camera_is_not_touched(void **state)
{
    struct viewer viewer = {.check = CHECK_SHAPE}, witness = {0};
    struct camera_stats before, after;
    pid_t spared;

    (void)state;
    viewer_open(&viewer, &gallery, url_of(&server, "", "cam"), NULL);
    viewer_open(&witness, &gallery, url_of(&server, "", "hevc"), NULL);
    viewer_run_frames(&viewer, 5);
    viewer_run_frames(&witness, 5);
    camera_stats(viewer.camera, &before);
    camera_stats(witness.camera, &after);
    spared = after.pid;
    assert_int_equal(kill(before.pid, SIGKILL), 0);
    gallery_run_until(&gallery, viewer_is_offline, &viewer);
    gallery_run_until(&gallery, viewer_is_online, &viewer);
    viewer_run_frames(&viewer, 5);
    camera_stats(viewer.camera, &after);
    assert_int_not_equal(before.pid, after.pid);
    assert_non_null(strstr(after.last_error, "signal 9"));
    assert_true(after.decoded > before.decoded);
    assert_int_equal(viewer.wrong, 0);
    viewer_run_frames(&witness, 1);
    camera_stats(witness.camera, &after);
    assert_int_equal(after.pid, spared);
    assert_int_equal(witness.offlines, 0);
}

static bool has_both_sizes(const void *userdata)
{
    return ((const struct viewer *)userdata)->sizes >= 2;
}

static void a_change_of_resolution_goes_through_without_a_break(void **state)
{
    struct viewer viewer = {.check = CHECK_SHAPE, .holds = CAMERA_HELD_MAX};

    (void)state;
    viewer_open(&viewer, &gallery, url_of(&server, "", "resized"), NULL);
    viewer_run_frames(&viewer, 1);
    viewer_let_go(&viewer, 2); /* one is held over the change, in memory of the last size */
    gallery_run_until(&gallery, has_both_sizes, &viewer);
    viewer_run_frames(&viewer, 5);
    assert_int_equal(viewer.offlines, 0);
    assert_int_equal(viewer.wrong, 0);
    viewer_let_go(&viewer, 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(streams_of_each_codec_arrive_whole_over_tcp_and_udp),
        CASE(two_subscriptions_open_the_camera_once_and_the_last_says_goodbye),
        CASE(a_password_is_given_and_shown_nowhere),
        CASE(a_refused_password_is_tried_seldom_and_another_one_at_once),
        CASE(a_password_that_is_wrong_is_wrong_for_all_urls_of_a_camera),
        CASE(refusals_of_some_urls_do_not_hold_others_up_that_had_the_password),
        CASE(a_password_and_the_goodbye_go_through_tls),
        CASE(a_connected_stream_has_no_broker_but_for_udp),
        CASE(a_server_that_is_killed_and_comes_back_gives_frames_again),
        CASE(a_server_that_stalls_is_noticed_and_another_camera_is_not_touched),
        CASE(a_child_that_is_killed_is_replaced_and_another_camera_is_not_touched),
        CASE(a_change_of_resolution_goes_through_without_a_break),
    };
    return cmocka_run_group_tests_name("integration_camera_rtsp", tests, NULL, NULL);
}

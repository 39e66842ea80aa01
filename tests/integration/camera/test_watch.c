/* A worker with real cameras: what the backend asks for is opened, and what it reports is true. */
#include "cmocka_all.h"

#include "detector/camera/watch.h"
#include "lib/process.h"
#include "stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BACKEND = 1, NAMES = 2, SNAPSHOT_WIDTH = 480, LONG_MS = 600000, NO_PORT = 1 };

static const char *const names[NAMES] = {"display-001;cam-001", "display-002;cam-001"};

static struct {
    struct worker worker;
    struct image_store images;
    struct watch watch;
    unsigned frames[NAMES];
    uint64_t first_number, last_number; /* of the frames of all subscriptions */
    unsigned of_snapshots;              /* of these frames */
    unsigned aside;                     /* snapshots that are not shown */
    unsigned earlier;                   /* stood in, from before what was shown last */
    char *report;                       /* the newest stateReport */
} scene;

struct entry {
    struct images images;
    struct watched watched;
};

static struct entry *entry_of(const char *name)
{
    return (struct entry *)worker_find(&scene.worker, name);
}

static bool on_send(void *userdata, uint64_t backend, const char *text, size_t bytes,
                    uint64_t *ret_end) /* NOLINT(readability-non-const-parameter): the hook's */
{
    assert_int_equal(backend, BACKEND);
    if (strstr(text, "stateReport") != NULL) {
        free(scene.report);
        scene.report = strndup(text, bytes);
    }
    return true;
}

static void on_close(void *userdata, uint64_t backend, int code, const char *reason)
{
    fail_msg("closed with %d: %s", code, reason);
}

static void on_event(void *userdata, const struct worker_event *event)
{
    struct entry *entry = (struct entry *)event->subscription;

    if (entry != NULL) {
        watch_event(&scene.watch, &entry->watched, event);
    }
    if (event->type == WORKER_SUBSCRIPTION_REMOVED) {
        images_fini(&entry->images);
    }
}

static void on_frame(void *userdata, struct images *images, const struct frame *frame,
                     enum watch_role role)
{
    image_put(&scene.images, images, frame);
    assert_true(frame_red(frame) >= 0);
    assert_int_equal(frame->width == SNAPSHOT_WIDTH, frame->source == IMAGE_SNAPSHOT);
    if (role == WATCH_ASIDE) {
        assert_int_equal(frame->source, IMAGE_SNAPSHOT);
        scene.aside++;
        return;
    }
    scene.first_number = scene.first_number != 0 ? scene.first_number : frame->number;
    scene.last_number = frame->number;
    scene.of_snapshots += frame->source == IMAGE_SNAPSHOT;
    scene.earlier += role == WATCH_STANDS_IN;
    for (int i = 0; i < NAMES; i++) {
        scene.frames[i] += strcmp(names[i], images->subscription.identifier) == 0;
    }
}

static struct server snapshots;

static void send_text(const char *text)
{
    assert_int_equal(worker_receive(&scene.worker, BACKEND, text, strlen(text)), 0);
}

/* Sends a list of streams at two paths, NULL: none, each with these fields more. The second one is
 * written in capitals, which make no other camera of it. */
static void send_list(int port, const char *first, const char *second, const char *more)
{
    const char *const paths[NAMES] = {first, second}, *const schemes[NAMES] = {"rtsp", "RTSP"};
    char text[4096] = "{\"type\":\"setSubscriptionList\",\"subscriptions\":[";
    size_t bytes = strlen(text);

    for (int i = 0; i < NAMES; i++) {
        if (paths[i] != NULL) {
            bytes += (size_t)snprintf(
                text + bytes, sizeof(text) - bytes,
                "%s{\"subscriptionIdentifier\":\"%s\",\"rtspUrl\":\"%s://127.0.0.1:%d/%s\","
                "\"modelUrl\":\"http://127.0.0.1/m.mpta\",\"modelId\":1,\"modelName\":\"m\"%s}",
                i > 0 && first != NULL ? "," : "", names[i], schemes[i], port, paths[i], more);
        }
    }
    (void)snprintf(text + bytes, sizeof(text) - bytes, "]}");
    send_text(text);
}

static bool reports_online(const char *name)
{
    const struct usage usage = {0};
    const char *at;

    worker_tick(&scene.worker, &usage);
    at = strstr(scene.report, name);
    return at != NULL && strstr(at, "\"online\":true") != NULL &&
           strstr(at, "\"online\":true") < strchr(at, '}');
}

static void run_frames(unsigned first, unsigned second)
{
    first += scene.frames[0];
    second += scene.frames[1];
    AWAIT_IN(&gallery, scene.frames[0] >= first && scene.frames[1] >= second);
}

static int begin(void **state)
{
    const struct worker_hooks hooks = {on_send, on_close, on_event, NULL, sizeof(struct entry)};

    server_start_streams(&server, 0, NULL);
    server_start(&snapshots, "snapshot_server.py", clip("larger.jpg"), NULL);
    gallery_init(&gallery);
    memset(&scene, 0, sizeof(scene));
    worker_init(&scene.worker, &hooks, WORKER_QUEUE_DEFAULT);
    scene.watch = (struct watch){.pool = gallery.pool,
                                 .options = {.stall_ms = 2000, .open_ms = 2000},
                                 .logger = gallery.logger,
                                 .on_frame = on_frame};
    worker_connected(&scene.worker, BACKEND);
    return 0;
}

static int end(void **state)
{
    watch_end(&scene.watch);
    for (size_t i = 0; i < scene.worker.subscription_count; i++) {
        images_fini((struct images *)scene.worker.subscriptions[i]);
    }
    (void)stage_end(state);
    worker_fini(&scene.worker);
    free(scene.report);
    server_end(&snapshots);
    return 0;
}

static struct camera_stats stats_of_name(const char *name, enum image_source source)
{
    struct camera_stats stats;

    assert_true(watch_stats(&entry_of(name)->watched, source, &stats));
    return stats;
}

static struct camera_stats stats_of(enum image_source source)
{
    return stats_of_name(names[0], source);
}

/* A camera gives its main stream and its substream at two paths; each subscription names its own,
 * or both the same. */
static void subscriptions_choose_a_stream_and_share_it_until_the_last_is_gone(void **state)
{
    send_list(server.port, "cam", "hevc", "");
    assert_false(reports_online(names[0]));
    run_frames(3, 3);
    for (int i = 0; i < NAMES; i++) {
        assert_true(reports_online(names[i]));
        assert_int_equal(stats_of_name(names[i], IMAGE_STREAM).subscribers, 1);
    }
    assert_string_equal(stats_of_name(names[0], IMAGE_STREAM).codec, "h264");
    assert_string_equal(stats_of_name(names[1], IMAGE_STREAM).codec, "hevc");
    send_list(server.port, "cam", "cam", ""); /* the first one goes on */
    assert_true(reports_online(names[0]));
    assert_false(reports_online(names[1]));
    run_frames(3, 3);
    assert_true(reports_online(names[1]));
    assert_int_equal(server_count(&server, "play cam"), 1);
    assert_string_equal(stats_of_name(names[1], IMAGE_STREAM).codec, "h264");
    assert_int_equal(stats_of_name(names[1], IMAGE_STREAM).subscribers, NAMES);
    send_list(server.port, NULL, "cam", "");
    scene.frames[0] = 0;
    run_frames(0, 3);
    assert_int_equal(scene.frames[0], 0);
    assert_int_equal(server_count(&server, "teardown cam"), 0);
    send_list(server.port, NULL, NULL, "");
    AWAIT_IN(&gallery, server_count(&server, "teardown cam") > 0);
}

static void crops_stages_and_requests_for_the_state_cost_no_frame(void **state)
{
    static const char *const stages[] = {"car_fueling", "welcome", "null"};
    char text[256];
    struct camera_stats before, after;

    server_end(&server);
    server_start(&server, "rtsp_faults.py", clip("rects.h264"), NULL);
    send_list(server.port, "healthy", NULL, "");
    run_frames(1, 0);
    scene.first_number = scene.last_number;
    scene.frames[0] = 1;
    before = stats_of(IMAGE_STREAM);
    for (int round = 0; round < 6; round++) {
        (void)snprintf(text, sizeof(text), ",\"cropX1\":%d", 10 * round);
        send_list(server.port, "healthy", NULL, text);
        send_text("{\"type\":\"requestState\"}");
        (void)snprintf(text, sizeof(text),
                       "{\"type\":\"setProgressionStage\",\"payload\":{\"displayIdentifier\":"
                       "\"display-001\",\"progressionStage\":%s%s%s}}",
                       round % 3 == 2 ? "" : "\"", stages[round % 3], round % 3 == 2 ? "" : "\"");
        send_text(text);
        run_frames(2, 0);
    }
    after = stats_of(IMAGE_STREAM);
    assert_int_equal(scene.last_number - scene.first_number + 1,
                     scene.frames[0] + after.skipped - before.skipped); /* on a busy machine */
    assert_int_equal(after.counts.dropped, before.counts.dropped);
    assert_int_equal(gallery_logged(&gallery, "camera-offline"), 0);
}

/* One subscription, or two, of the stream and of snapshots at the path. */
static void send_both(int stream_port, const char *path, int interval_ms, int count)
{
    char more[256];

    (void)snprintf(more, sizeof(more),
                   ",\"snapshotUrl\":\"http://127.0.0.1:%d/%s\",\"snapshotInterval\":%d",
                   snapshots.port, path, interval_ms);
    send_list(stream_port, "cam", count == NAMES ? "cam" : NULL, more);
}

static bool are_both_online(void)
{
    return stats_of(IMAGE_STREAM).is_online && stats_of(IMAGE_SNAPSHOT).is_online;
}

static void snapshots_are_asked_for_while_the_stream_is_shown_and_while_it_is_away(void **state)
{
    unsigned asked;

    send_both(server.port, "still", 50, 1);
    AWAIT_IN(&gallery, are_both_online());
    run_frames(1, 0);
    asked = server_count(&snapshots, "get still");
    scene.of_snapshots = 0;
    AWAIT_IN(&gallery, scene.aside >= 3);
    run_frames(5, 0);
    assert_true(server_count(&snapshots, "get still") > asked);
    assert_int_equal(scene.of_snapshots, 0);
    assert_int_equal(stats_of(IMAGE_SNAPSHOT).width, SNAPSHOT_WIDTH);
    assert_string_equal(stats_of(IMAGE_SNAPSHOT).codec, "jpeg");
    server_end(&server);
    AWAIT_IN(&gallery, !stats_of(IMAGE_STREAM).is_online);
    assert_non_null(image_newest(&entry_of(names[0])->images, IMAGE_STREAM)); /* it stays */
    asked = server_count(&snapshots, "get still");
    scene.of_snapshots = 0;
    do {
        run_frames(1, 0);
    } while (server_count(&snapshots, "get still") < asked + 3);
    assert_true(scene.of_snapshots >= 2);
    assert_true(reports_online(names[0]));
    server_end(&snapshots);
    AWAIT_IN(&gallery, !reports_online(names[0]));
    assert_non_null(strstr(stats_of(IMAGE_SNAPSHOT).last_error, "snapshot: "));
}

static void who_subscribes_later_has_the_newest_snapshot_at_once(void **state)
{
    send_both(NO_PORT, "still", LONG_MS, 1);
    run_frames(1, 0);
    send_both(NO_PORT, "still", LONG_MS, NAMES);
    assert_int_equal(scene.frames[1], 1);
    assert_true(reports_online(names[1]));
    assert_int_equal(server_count(&snapshots, "get still"), 1);
    server_end(&snapshots);
    uv_sleep(300); /* by then its process sleeps until the next one is due */
    send_both(NO_PORT, "still", 50, NAMES);
    AWAIT_IN(&gallery, !reports_online(names[0]));
    assert_false(reports_online(names[1]));
}

static void another_stream_leaves_the_snapshots_as_they_are(void **state)
{
    send_both(server.port, "still", LONG_MS, 1);
    AWAIT_IN(&gallery, are_both_online());
    run_frames(2, 0);
    scene.of_snapshots = scene.earlier = 0;
    send_both(NO_PORT, "still", LONG_MS, 1);
    assert_int_equal(scene.of_snapshots, 1);
    assert_int_equal(scene.earlier, 1); /* the model has seen the stream since */
    assert_true(reports_online(names[0]));
    assert_int_equal(server_count(&snapshots, "get still"), 1);
}

static void snapshots_that_are_taken_away_leave_nothing_online(void **state)
{
    send_both(NO_PORT, "still", 50, 1);
    run_frames(2, 0);
    assert_true(reports_online(names[0]));
    send_both(NO_PORT, "still", 60, 1); /* the same camera: nothing is interrupted */
    assert_true(reports_online(names[0]));
    assert_non_null(image_newest(&entry_of(names[0])->images, IMAGE_SNAPSHOT));
    send_both(NO_PORT, "missing", 60, 1);
    assert_false(reports_online(names[0]));
    assert_null(image_newest(&entry_of(names[0])->images, IMAGE_SNAPSHOT));
    send_both(NO_PORT, "still", 60, 1);
    run_frames(2, 0);
    assert_true(reports_online(names[0]));
    send_list(NO_PORT, "cam", NULL, "");
    assert_false(reports_online(names[0]));
}

static void a_url_that_is_none_is_logged_without_being_named(void **state)
{
    send_list(70000, "canary", NULL, "");
    assert_false(reports_online(names[0]));
    assert_int_equal(gallery_logged(&gallery, "camera-refused"), 1);
    assert_int_equal(gallery_logged(&gallery, names[0]), 1);
    assert_int_equal(gallery_logged(&gallery, "canary"), 0);
    assert_non_null(
        strstr(stats_of(IMAGE_STREAM).last_error, "its port is no number from 1 to 65535"));
}

/* All cameras of one recorder have the same host and port. */
static void a_camera_that_goes_offline_is_told_by_its_subscriptions(void **state)
{
    send_list(NO_PORT, "cam", "cam", "");
    AWAIT_IN(&gallery, gallery_logged(&gallery, "camera-offline") > 0);
    assert_true(gallery_logged(&gallery, names[0]) > 0);
    assert_true(gallery_logged(&gallery, names[1]) > 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(subscriptions_choose_a_stream_and_share_it_until_the_last_is_gone),
        CASE(crops_stages_and_requests_for_the_state_cost_no_frame),
        CASE(snapshots_are_asked_for_while_the_stream_is_shown_and_while_it_is_away),
        CASE(who_subscribes_later_has_the_newest_snapshot_at_once),
        CASE(another_stream_leaves_the_snapshots_as_they_are),
        CASE(snapshots_that_are_taken_away_leave_nothing_online),
        CASE(a_url_that_is_none_is_logged_without_being_named),
        CASE(a_camera_that_goes_offline_is_told_by_its_subscriptions),
    };
    return cmocka_run_group_tests_name("integration_camera_watch", tests, NULL, NULL);
}

/* Whom a password is given to: certificates of rtsps and https, and where packets go. */
#include "cmocka_all.h"

#include "lib/process.h"
#include "server.h"
#include "viewer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct place {
    struct gallery gallery;
    struct server server;
    char folder[128];
    char ca[192];
};

static void place_init(struct place *place, const char *script, const char *file,
                       const char *subject)
{
    const char *arguments[] = {file, place->folder, subject, NULL};

    process_make_folder(place->folder, sizeof(place->folder));
    assert_int_equal(chmod(place->folder, 0755),
                     0); /* cameras are read by nobody, if we are root */
    (void)snprintf(place->ca, sizeof(place->ca), "%s/ca.pem", place->folder);
    server_start(&place->server, script, arguments);
    gallery_init(&place->gallery);
}

static void place_fini(struct place *place)
{
    gallery_fini(&place->gallery);
    server_end(&place->server);
    process_remove_folder(place->folder);
}

static void open_at(struct place *place, struct viewer *viewer, const char *scheme,
                    const char *path, struct camera_options options)
{
    char url[160];

    /* A snapshot's timeout holds for its handshake, too, which takes a busy machine seconds. */
    options.stall_ms = strcmp(scheme, "https") == 0 ? 15000 : 3000;
    (void)snprintf(url, sizeof(url), "%s://viewer:canary7@127.0.0.1:%d/%s", scheme,
                   place->server.port, path);
    viewer_open(viewer, &place->gallery, url, &options);
}

static bool has_error(const void *userdata)
{
    struct camera_stats stats;

    camera_stats(((const struct viewer *)userdata)->camera, &stats);
    return stats.last_error[0] != '\0';
}

/* Refused, for such a reason and with a way out. */
static void assert_refused(struct place *place, const char *scheme, const char *path,
                           const char *ca_file, const char *reason)
{
    struct viewer viewer = {0};
    struct camera_stats stats;

    open_at(place, &viewer, scheme, path, (struct camera_options){.ca_file = ca_file});
    gallery_run_until(&place->gallery, has_error, &viewer);
    camera_stats(viewer.camera, &stats);
    print_message("%s\n", stats.last_error);
    assert_non_null(strstr(stats.last_error, reason));
    assert_non_null(strstr(stats.last_error, "--camera-ca FILE"));
    assert_non_null(strstr(stats.last_error, "--camera-tls-verify no"));
    assert_null(strstr(stats.last_error, "canary"));
    viewer_close(&viewer);
}

static void assert_frames(struct place *place, const char *scheme, const char *path,
                          struct camera_options options)
{
    struct viewer viewer = {.check = CHECK_SHAPE};

    open_at(place, &viewer, scheme, path, options);
    viewer_run_frames(&viewer, 3);
    assert_int_equal(viewer.wrong, 0);
    viewer_close(&viewer);
}

static void rtsps_gives_no_word_to_a_stranger(void **state)
{
    struct place place;

    (void)state;
    place_init(&place, "rtsp_faults.py", clip("rects.h264"), "IP:127.0.0.1");
    assert_refused(&place, "rtsps", "hush", NULL,
                   "certificate is refused (SSL certificate problem: self-signed certificate)");
    assert_int_equal(server_count(&place.server, "asked"), 0);
    assert_frames(&place, "rtsps", "hush", (struct camera_options){.ca_file = place.ca});
    assert_true(server_count(&place.server, "asked") > 0);
    assert_frames(&place, "rtsps", "hush", (struct camera_options){.trusts_any = true});
    place_fini(&place);
}

static void a_certificate_of_another_host_is_none(void **state)
{
    struct place place;

    (void)state;
    place_init(&place, "rtsp_faults.py", clip("rects.h264"), "DNS:evil.example");
    assert_refused(&place, "rtsps", "hush", place.ca, "matches target host name");
    assert_int_equal(server_count(&place.server, "asked"), 0);
    place_fini(&place);
}

/* The server speaks TLS alone. */
static void a_redirect_from_rtsps_to_rtsp_stays_within_tls(void **state)
{
    struct place place;

    (void)state;
    place_init(&place, "rtsp_faults.py", clip("rects.h264"), "IP:127.0.0.1");
    assert_frames(&place, "rtsps", "onward", (struct camera_options){.ca_file = place.ca});
    place_fini(&place);
}

static void snapshots_by_https_know_the_same_certificates(void **state)
{
    struct place place;

    (void)state;
    place_init(&place, "snapshot_server.py", clip("still.jpg"), NULL);
    assert_refused(&place, "https", "still", NULL, "self-signed certificate");
    assert_int_equal(server_count(&place.server, "get still"), 0);
    assert_frames(&place, "https", "still",
                  (struct camera_options){.ca_file = place.ca, .interval_ms = 50});
    assert_frames(&place, "https", "still",
                  (struct camera_options){.trusts_any = true, .interval_ms = 50});
    place_fini(&place);
}

static void which_step_failed_is_said(void **state)
{
    /* A part of a name has at most 63 bytes, so nobody is asked for that one. */
    static const struct {
        const char *scheme, *host, *reason;
    } rows[] = {
        {"rtsp", "a234567890123456789012345678901234567890123456789012345678901234567890",
         "open: the host's name is not known"},
        {"rtsps", "127.0.0.1", "open: TLS failed"},
    };
    const char *const nothing[] = {NULL};
    struct gallery gallery;
    struct server server;

    (void)state;
    server_start(&server, "rtsp_faults.py", nothing);
    gallery_init(&gallery);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct viewer viewer = {0};
        struct camera_stats stats;
        char url[160];

        (void)snprintf(url, sizeof(url), "%s://%s:%d/canary", rows[i].scheme, rows[i].host,
                       server.port);
        viewer_open(&viewer, &gallery, url, NULL);
        gallery_run_until(&gallery, has_error, &viewer);
        camera_stats(viewer.camera, &stats);
        print_message("%s\n", stats.last_error);
        assert_non_null(strstr(stats.last_error, rows[i].reason));
        viewer_close(&viewer);
    }
    gallery_fini(&gallery);
    server_end(&server);
}

/* A camera may say that its media come from any host; to that one nothing is sent. */
static void packets_go_to_no_other_host_than_the_cameras(void **state)
{
    const char *const nothing[] = {NULL};
    struct gallery gallery;
    struct server server;
    struct viewer viewer = {0};
    char url[128];

    (void)state;
    server_start(&server, "rtsp_faults.py", nothing);
    gallery_init(&gallery);
    (void)snprintf(url, sizeof(url), "rtsp://127.0.0.1:%d/source", server.port);
    viewer_open(&viewer, &gallery, url,
                &(struct camera_options){.uses_udp = true, .stall_ms = 1000});
    gallery_run_until(&gallery, has_error, &viewer);
    assert_int_equal(server_count(&server, "astray"), 0);
    gallery_fini(&gallery);
    server_end(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rtsps_gives_no_word_to_a_stranger),
        cmocka_unit_test(a_certificate_of_another_host_is_none),
        cmocka_unit_test(a_redirect_from_rtsps_to_rtsp_stays_within_tls),
        cmocka_unit_test(snapshots_by_https_know_the_same_certificates),
        cmocka_unit_test(which_step_failed_is_said),
        cmocka_unit_test(packets_go_to_no_other_host_than_the_cameras),
    };
    return cmocka_run_group_tests_name("integration_camera_trust", tests, NULL, NULL);
}

/* Whom a password is given to: certificates of rtsps and https, and where packets go. */
#include "cmocka_all.h"

#include "lib/process.h"
#include "server.h"
#include "viewer.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static struct gallery gallery;
static struct server server;
static char folder[128], ca[192]; /* of the server's certificates; "": it has none */

static void begin_with(const char *script, const char *file, const char *subject)
{
    const char *arguments[] = {file, folder, subject, NULL};

    process_make_folder(folder, sizeof(folder));
    assert_int_equal(chmod(folder, 0755), 0); /* if we are root, nobody reads it */
    (void)snprintf(ca, sizeof(ca), "%s/ca.pem", folder);
    server_start(&server, script, arguments);
    gallery_init(&gallery);
}

static int end(void **state)
{
    (void)state;
    gallery_fini(&gallery);
    server_end(&server);
    if (folder[0] != '\0') {
        process_remove_folder(folder);
    }
    folder[0] = '\0';
    return 0;
}

static void open_at(struct viewer *viewer, const char *scheme, const char *path,
                    struct camera_options options)
{
    char url[160];

    /* A snapshot's timeout holds for its handshake, too, which takes a busy machine seconds. */
    options.stall_ms = strcmp(scheme, "https") == 0 ? 15000 : 3000;
    (void)snprintf(url, sizeof(url), "%s://viewer:canary7@127.0.0.1:%d/%s", scheme, server.port,
                   path);
    viewer_open(viewer, &gallery, url, &options);
}

/* Refused, for such a reason and with a way out. */
static void assert_refused(const char *scheme, const char *path, const char *ca_file,
                           const char *reason)
{
    struct viewer viewer = {0};
    struct camera_stats stats;

    open_at(&viewer, scheme, path, (struct camera_options){.ca_file = ca_file});
    gallery_run_until(&gallery, viewer_has_failed, &viewer);
    camera_stats(viewer.camera, &stats);
    print_message("%s\n", stats.last_error);
    assert_non_null(strstr(stats.last_error, reason));
    assert_non_null(strstr(stats.last_error, "--camera-ca FILE"));
    assert_non_null(strstr(stats.last_error, "--camera-tls-verify no"));
    assert_null(strstr(stats.last_error, "canary"));
    viewer_close(&viewer);
}

static void assert_frames(const char *scheme, const char *path, struct camera_options options)
{
    struct viewer viewer = {.check = CHECK_SHAPE};

    open_at(&viewer, scheme, path, options);
    viewer_run_frames(&viewer, 3);
    assert_int_equal(viewer.wrong, 0);
    viewer_close(&viewer);
}

static void rtsps_gives_no_word_to_a_stranger(void **state)
{
    (void)state;
    begin_with("rtsp_faults.py", clip("rects.h264"), "IP:127.0.0.1");
    assert_refused("rtsps", "hush", NULL,
                   "certificate is refused (SSL certificate problem: self-signed certificate)");
    assert_int_equal(server_count(&server, "asked"), 0);
    assert_frames("rtsps", "hush", (struct camera_options){.ca_file = ca});
    assert_true(server_count(&server, "asked") > 0);
    assert_frames("rtsps", "hush", (struct camera_options){.trusts_any = true});
}

static void a_certificate_of_another_host_is_none(void **state)
{
    (void)state;
    begin_with("rtsp_faults.py", clip("rects.h264"), "DNS:evil.example");
    assert_refused("rtsps", "hush", ca, "matches target host name");
    assert_int_equal(server_count(&server, "asked"), 0);
}

/* The server speaks TLS alone. */
static void a_redirect_from_rtsps_to_rtsp_stays_within_tls(void **state)
{
    (void)state;
    begin_with("rtsp_faults.py", clip("rects.h264"), "IP:127.0.0.1");
    assert_frames("rtsps", "onward", (struct camera_options){.ca_file = ca});
}

static void snapshots_by_https_know_the_same_certificates(void **state)
{
    (void)state;
    begin_with("snapshot_server.py", clip("still.jpg"), NULL);
    assert_refused("https", "still", NULL, "self-signed certificate");
    assert_int_equal(server_count(&server, "get still"), 0);
    assert_frames("https", "still", (struct camera_options){.ca_file = ca, .interval_ms = 50});
    assert_frames("https", "still", (struct camera_options){.trusts_any = true, .interval_ms = 50});
}

/* A camera may say that its media come from any host; to that one nothing is sent. */
static void packets_go_to_no_other_host_than_the_cameras(void **state)
{
    const char *const nothing[] = {NULL};
    struct viewer viewer = {0};
    char url[128];

    (void)state;
    server_start(&server, "rtsp_faults.py", nothing);
    gallery_init(&gallery);
    (void)snprintf(url, sizeof(url), "rtsp://127.0.0.1:%d/source", server.port);
    viewer_open(&viewer, &gallery, url,
                &(struct camera_options){.uses_udp = true, .stall_ms = 1000});
    gallery_run_until(&gallery, viewer_has_failed, &viewer);
    assert_int_equal(server_count(&server, "astray"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(rtsps_gives_no_word_to_a_stranger, end),
        cmocka_unit_test_teardown(a_certificate_of_another_host_is_none, end),
        cmocka_unit_test_teardown(a_redirect_from_rtsps_to_rtsp_stays_within_tls, end),
        cmocka_unit_test_teardown(snapshots_by_https_know_the_same_certificates, end),
        cmocka_unit_test_teardown(packets_go_to_no_other_host_than_the_cameras, end),
    };
    return cmocka_run_group_tests_name("integration_camera_trust", tests, NULL, NULL);
}

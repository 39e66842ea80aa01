/* Whom a password is given to: certificates of rtsps and https. */
#include "cmocka_all.h"

#include "lib/process.h"
#include "stage.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[128], ca[192]; /* of the server's certificates */

static void begin_with(const char *script, const char *file, const char *subject)
{
    process_make_folder(folder, sizeof(folder));
    assert_int_equal(chmod(folder, 0755), 0); /* if we are root, nobody reads it */
    (void)snprintf(ca, sizeof(ca), "%s/ca.pem", folder);
    server_start(&server, script, file, folder, subject, NULL);
    gallery_init(&gallery);
}

static int end(void **state)
{
    (void)stage_end(state);
    process_remove_folder(folder);
    return 0;
}

static void open_at(struct viewer *viewer, const char *scheme, const char *path,
                    struct camera_options options)
{
    char user[64];

    /* A snapshot's timeout holds for its handshake, too, which takes a busy machine seconds. */
    options.stall_ms = strcmp(scheme, "https") == 0 ? 15000 : 3000;
    (void)snprintf(user, sizeof(user), "%s://viewer:canary7@", scheme);
    stage_open(viewer, &server, user, path, &options);
}

/* "": the system's authorities. */
static struct camera_options trusting(const char *ca_file)
{
    struct camera_options options = {.interval_ms = 50};

    (void)snprintf(options.ca_file, sizeof(options.ca_file), "%s", ca_file);
    return options;
}

/* Refused, for such a reason and with a way out. */
static void assert_refused(const char *scheme, const char *path, const char *ca_file,
                           const char *reason)
{
    struct viewer viewer = {0};

    open_at(&viewer, scheme, path, trusting(ca_file));
    stage_run_failed(&viewer, reason);
    stage_run_failed(&viewer, "--camera-ca FILE");
    stage_run_failed(&viewer, "--camera-tls-verify no");
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
    begin_with("rtsp_faults.py", clip("rects.h264"), "IP:127.0.0.1");
    assert_refused("rtsps", "hush", "",
                   "certificate is refused (SSL certificate problem: self-signed certificate)");
    assert_int_equal(server_count(&server, "asked"), 0);
    assert_frames("rtsps", "hush", trusting(ca));
    assert_true(server_count(&server, "asked") > 0);
    assert_frames("rtsps", "hush", (struct camera_options){.trusts_any = true});
    /* A redirect to rtsp stays within TLS: the server speaks nothing else. */
    assert_frames("rtsps", "onward", trusting(ca));
}

/* Nor does it wait without end for a process that reads no more. */
static void a_tunnel_ends_with_its_camera(void **state)
{
    struct viewer viewer = {0};
    struct pollfd broker = {.events = POLLIN};
    bool has_ended;

    begin_with("rtsp_faults.py", clip("rects.h264"), "IP:127.0.0.1");
    open_at(&viewer, "rtsps", "burst", trusting(ca));
    viewer_run_frames(&viewer, 3);
    broker.fd = pidfd_open(viewer_broker(&viewer), 0);
    assert_true(broker.fd >= 0);
    assert_int_equal(kill(viewer_stats(&viewer).pid, SIGSTOP), 0);
    stage_run_failed(&viewer, "does not answer");
    has_ended = poll(&broker, 1, PATIENCE_MS) == 1;
    (void)pidfd_send_signal(broker.fd, SIGKILL, NULL, 0); /* else it has our output for good */
    assert_true(has_ended);
    (void)close(broker.fd);
}

static void a_certificate_of_another_host_is_none(void **state)
{
    begin_with("rtsp_faults.py", clip("rects.h264"), "DNS:evil.example");
    assert_refused("rtsps", "hush", ca, "matches target host name");
    assert_int_equal(server_count(&server, "asked"), 0);
}

static void snapshots_by_https_know_the_same_certificates(void **state)
{
    begin_with("snapshot_server.py", clip("still.jpg"), NULL);
    assert_refused("https", "still", "", "self-signed certificate");
    assert_int_equal(server_count(&server, "get still"), 0);
    assert_frames("https", "still", trusting(ca));
    assert_frames("https", "still", (struct camera_options){.trusts_any = true, .interval_ms = 50});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(rtsps_gives_no_word_to_a_stranger, end),
        cmocka_unit_test_teardown(a_tunnel_ends_with_its_camera, end),
        cmocka_unit_test_teardown(a_certificate_of_another_host_is_none, end),
        cmocka_unit_test_teardown(snapshots_by_https_know_the_same_certificates, end),
    };
    return cmocka_run_group_tests_name("integration_camera_trust", tests, NULL, NULL);
}

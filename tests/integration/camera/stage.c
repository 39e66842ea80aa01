#include "stage.h"

#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

struct gallery gallery;
struct server server;

void server_start_streams(struct server *ret, int port, const char *auth)
{
    char number[16];

    (void)snprintf(number, sizeof(number), "%d", port);
    server_start(ret, "rtsp_server.py", number, "cam=" BATON_CLIPS "/rects.h264",
                 "hevc=" BATON_CLIPS "/rects265.h265", "jpeg=" BATON_CLIPS "/rects.mjpeg",
                 "resized=" BATON_CLIPS "/resized.h264", auth, NULL);
}

int stage_end(void **state)
{
    gallery_fini(&gallery);
    server_end(&server);
    return 0;
}

void stage_open(struct viewer *viewer, const struct server *at, const char *scheme,
                const char *path, const struct camera_options *options)
{
    char url[256];

    (void)snprintf(url, sizeof(url), "%s127.0.0.1:%d/%s", scheme, at->port, path);
    viewer_open(viewer, &gallery, url, options);
}

void stage_run_failed(const struct viewer *viewer, const char *reason)
{
    struct camera_stats stats;

    AWAIT_IN(&gallery, viewer_stats(viewer).last_error[0] != '\0');
    stats = viewer_stats(viewer);
    if (strstr(stats.last_error, reason) == NULL || strstr(stats.last_error, "canary") != NULL) {
        fail_msg("%s, in place of: %s", stats.last_error, reason);
    }
}

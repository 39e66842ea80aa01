#include "viewer.h"

#include "cmocka_all.h"

#include "base/crc32c.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void on_patience_over(uv_timer_t *timer)
{
    struct gallery *gallery = timer->data;

    gallery->is_over = true;
}

void gallery_init(struct gallery *gallery)
{
    struct camera_pool_config config = {.loop = &gallery->loop,
                                        .program = BATON_CAMERA_PROGRAM,
                                        .backoff_min_ms = 50,
                                        .backoff_max_ms = 500,
                                        .allows_files = true};
    struct baton_error error;

    memset(gallery, 0, sizeof(*gallery));
    assert_int_equal(uv_loop_init(&gallery->loop), 0);
    assert_int_equal(uv_timer_init(&gallery->loop, &gallery->patience), 0);
    gallery->patience.data = gallery;
    gallery->log_fd = memfd_create("log", MFD_CLOEXEC);
    assert_true(gallery->log_fd >= 0);
    gallery->logger = logger_new(gallery->log_fd, LOG_FORMAT_HUMAN, LOG_DEBUG);
    assert_non_null(gallery->logger);
    config.logger = gallery->logger;
    assert_int_equal(camera_pool_new(&gallery->pool, &config, &error), 0);
}

void gallery_fini(struct gallery *gallery)
{
    camera_pool_close(gallery->pool);
    uv_close((uv_handle_t *)&gallery->patience, NULL);
    assert_int_equal(uv_run(&gallery->loop, UV_RUN_DEFAULT), 0);
    camera_pool_free(gallery->pool);
    assert_int_equal(uv_loop_close(&gallery->loop), 0);
    logger_free(gallery->logger);
    (void)close(gallery->log_fd);
}

void gallery_run_until(struct gallery *gallery, bool (*is_done)(const void *userdata),
                       const void *userdata)
{
    gallery->is_over = false;
    assert_int_equal(uv_timer_start(&gallery->patience, on_patience_over, VIEWER_PATIENCE_MS, 0),
                     0);
    while (!is_done(userdata) && !gallery->is_over) {
        (void)uv_run(&gallery->loop, UV_RUN_ONCE);
    }
    (void)uv_timer_stop(&gallery->patience);
    if (gallery->is_over) {
        char *log = gallery_log(gallery);
        print_error("patience ran out; the log:\n%s\n", log);
        free(log);
        fail();
    }
}

char *gallery_log(const struct gallery *gallery)
{
    off_t bytes = lseek(gallery->log_fd, 0, SEEK_END);
    char *text = calloc(1, (size_t)bytes + 1);

    assert_non_null(text);
    assert_int_equal(pread(gallery->log_fd, text, (size_t)bytes, 0), bytes);
    return text;
}

uint32_t frame_sum(const struct camera_frame *frame)
{
    uint32_t sum = 0;

    for (int plane = 0; plane < 3; plane++) {
        int width = plane == 0 ? frame->picture.width : (frame->picture.width + 1) / 2;
        int height = plane == 0 ? frame->picture.height : (frame->picture.height + 1) / 2;
        for (int y = 0; y < height; y++) {
            sum = crc32c(sum, frame->picture.plane[plane] + frame->picture.stride[plane] * y,
                         (size_t)width);
        }
    }
    return sum;
}

static bool is_red(const struct camera_frame *frame, int x, int y)
{
    const struct frame *picture = &frame->picture;
    int u = picture->plane[1][picture->stride[1] * (y / 2) + x / 2];
    int v = picture->plane[2][picture->stride[2] * (y / 2) + x / 2];

    return v > 190 && u < 120;
}

bool frame_has_red_at(const struct camera_frame *frame, double seconds)
{
    int left = 10 + (int)(seconds * 60);

    return is_red(frame, left + 6, 40) && is_red(frame, left + 53, 40) &&
           !is_red(frame, left + 68, 40) && (left < 10 || !is_red(frame, left - 8, 40));
}

static void on_frame(void *userdata, const struct camera_frame *frame)
{
    struct viewer *viewer = userdata;

    assert_true(frame->number > viewer->number);
    viewer->frames++;
    viewer->number = frame->number;
    viewer->width = frame->picture.width;
    viewer->height = frame->picture.height;
    viewer->pts_us = frame->pts_us;
    if (viewer->checks_red) {
        viewer->wrong += !frame_has_red_at(frame, (double)frame->pts_us / 1e6);
    }
    if (viewer->holds && viewer->kept_count < CAMERA_HELD_MAX) {
        viewer->kept[viewer->kept_count] = camera_frame_ref(frame);
        viewer->kept_sum[viewer->kept_count++] = frame_sum(frame);
    }
}

static void on_online(void *userdata, bool is_online)
{
    struct viewer *viewer = userdata;

    assert_true(viewer->is_online != is_online);
    viewer->is_online = is_online;
    viewer->onlines += is_online;
    viewer->offlines += !is_online;
}

static void on_ended(void *userdata)
{
    struct viewer *viewer = userdata;

    viewer->is_ended = true;
}

void viewer_open(struct viewer *viewer, struct gallery *gallery, const char *url,
                 const struct camera_options *options)
{
    const struct camera_options plain = {0};
    const struct camera_callbacks callbacks = {on_frame, on_online, on_ended, viewer};
    struct baton_error error;
    int rc;

    viewer->gallery = gallery;
    rc = camera_open(&viewer->camera, gallery->pool, url, options != NULL ? options : &plain,
                     &callbacks, &error);
    if (rc != 0) {
        print_error("%s\n", error.message);
    }
    assert_int_equal(rc, 0);
}

void viewer_close(struct viewer *viewer)
{
    camera_close(viewer->camera);
    viewer->camera = NULL;
}

const char *clip(const char *name)
{
    static char path[512]; /* of the newest call */

    (void)snprintf(path, sizeof(path), "%s/%s", BATON_CLIPS, name);
    return path;
}

#include "viewer.h"

#include "cmocka_all.h"

#include "base/crc32c.h"
#include "lib/assert_ok.h"
#include "lib/process.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TICK_MS = 20, RED_ROW = 40, RED_WIDTH = 60, RED_SPEED = 60, FPS = 15 };

static void on_tick(uv_timer_t *timer)
{
}

void gallery_init(struct gallery *gallery)
{
    gallery_init_with(gallery, BATON_CAMERA_PROGRAM);
}

void gallery_init_with(struct gallery *gallery, const char *program)
{
    struct camera_pool_config config = {.loop = &gallery->loop,
                                        .program = program,
                                        .backoff_min_ms = 50,
                                        .backoff_max_ms = 500,
                                        .allows_files = true};

    memset(gallery, 0, sizeof(*gallery));
    assert_int_equal(uv_loop_init(&gallery->loop), 0);
    assert_int_equal(uv_timer_init(&gallery->loop, &gallery->tick), 0);
    assert_int_equal(uv_timer_start(&gallery->tick, on_tick, TICK_MS, TICK_MS), 0);
    gallery->log_fd = memfd_create("log", MFD_CLOEXEC);
    assert_true(gallery->log_fd >= 0);
    gallery->logger = logger_new(gallery->log_fd, LOG_FORMAT_HUMAN, LOG_DEBUG);
    assert_non_null(gallery->logger);
    config.logger = gallery->logger;
    ASSERT_OK(camera_pool_new(&gallery->pool, &config, failure));
}

void gallery_fini(struct gallery *gallery)
{
    camera_pool_close(gallery->pool);
    uv_close((uv_handle_t *)&gallery->tick, NULL);
    assert_int_equal(uv_run(&gallery->loop, UV_RUN_DEFAULT), 0);
    camera_pool_free(gallery->pool);
    assert_int_equal(uv_loop_close(&gallery->loop), 0);
    logger_free(gallery->logger);
    (void)close(gallery->log_fd);
}

void gallery_turn(struct gallery *gallery, instant until, const char *condition)
{
    if (!instant_before(clock_now(), until)) {
        char *log = gallery_log(gallery);
        print_error("the log:\n%s\n", log);
        free(log);
        fail_msg("not in time: %s", condition);
    }
    (void)uv_run(&gallery->loop, UV_RUN_ONCE);
}

char *gallery_log(const struct gallery *gallery)
{
    off_t bytes = lseek(gallery->log_fd, 0, SEEK_END);
    char *text = calloc(1, (size_t)bytes + 1);

    assert_non_null(text);
    assert_int_equal(pread(gallery->log_fd, text, (size_t)bytes, 0), bytes);
    return text;
}

unsigned gallery_logged(const struct gallery *gallery, const char *text)
{
    char *log = gallery_log(gallery);
    unsigned count = 0;

    for (const char *at = log; (at = strstr(at, text)) != NULL; at++) {
        count++;
    }
    free(log);
    return count;
}

static uint32_t frame_sum(const struct frame *frame)
{
    uint32_t sum = 0;

    for (int plane = 0; plane < 3; plane++) {
        int width = plane == 0 ? frame->width : (frame->width + 1) / 2;
        int height = plane == 0 ? frame->height : (frame->height + 1) / 2;
        for (int y = 0; y < height; y++) {
            sum = crc32c(sum, frame->plane[plane] + frame->stride[plane] * y, (size_t)width);
        }
    }
    return sum;
}

int frame_red(const struct frame *frame)
{
    int left = -1, count = 0;

    for (int x = 0; x < frame->width; x += 2) {
        int u = frame->plane[1][frame->stride[1] * (RED_ROW / 2) + x / 2];
        int v = frame->plane[2][frame->stride[2] * (RED_ROW / 2) + x / 2];
        if (v > 180 && u < 125) {
            left = left < 0 ? x : left;
            count += 2;
        }
    }
    return abs(count - RED_WIDTH) <= 4 ? left : -1;
}

/* Whether nothing got lost since the last frame but what a newer one overtook here, which is
 * numbered. FFmpeg gives the first two pictures of a stream the same time. */
static bool is_next(const struct viewer *viewer, const struct frame *frame)
{
    return viewer->frames < 2 || llround((double)(frame->pts_us - viewer->pts_us) * FPS / 1e6) ==
                                     (long long)(frame->number - viewer->number);
}

static bool is_right(const struct viewer *viewer, const struct frame *frame)
{
    int left = viewer->check == CHECK_NOTHING ? 0 : frame_red(frame);
    double wanted = 10 + (double)frame->pts_us / 1e6 * RED_SPEED;

    if (viewer->check == CHECK_SEQUENCE && !is_next(viewer, frame)) {
        return false;
    }
    return left >= 0 && (viewer->check != CHECK_TIME || abs(left - (int)wanted) <= 2);
}

static void on_frame(void *userdata, const struct frame *frame)
{
    struct viewer *viewer = userdata;

    assert_true(frame->number > viewer->number);
    viewer->wrong += !is_right(viewer, frame);
    viewer->frames++;
    viewer->number = frame->number;
    viewer->sizes += viewer->width != frame->width;
    viewer->width = frame->width;
    viewer->height = frame->height;
    viewer->pts_us = frame->pts_us;
    if (viewer->kept_count < viewer->holds) {
        viewer->kept[viewer->kept_count] = frame_ref(frame);
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
    const struct camera_callbacks callbacks = {on_frame, on_online, on_ended, viewer, NULL};

    viewer->gallery = gallery;
    ASSERT_OK(camera_open(&viewer->camera, gallery->pool, url, options != NULL ? options : &plain,
                          &callbacks, failure));
}

void viewer_close(struct viewer *viewer)
{
    camera_close(viewer->camera);
    viewer->camera = NULL;
}

struct camera_stats viewer_stats(const struct viewer *viewer)
{
    struct camera_stats stats;

    camera_stats(viewer->camera, &stats);
    return stats;
}

int viewer_fences(const struct viewer *viewer)
{
    return (int)(process_status(viewer_stats(viewer).pid, "Seccomp_filters", 10) -
                 process_status(getpid(), "Seccomp_filters", 10));
}

pid_t viewer_broker(const struct viewer *viewer)
{
    return process_child(viewer_stats(viewer).pid);
}

void viewer_let_go(struct viewer *viewer, unsigned count)
{
    viewer->holds = 0;
    for (unsigned i = 0; i < viewer->kept_count; i++) {
        assert_int_equal(frame_sum(viewer->kept[i]), viewer->kept_sum[i]);
    }
    while (viewer->kept_count > count) {
        frame_unref(viewer->kept[--viewer->kept_count]);
    }
}

void viewer_run_frames(struct viewer *viewer, unsigned count)
{
    unsigned wanted = viewer->frames + count;

    AWAIT_IN(viewer->gallery, viewer->frames >= wanted);
}

const char *clip(const char *name)
{
    static char path[512]; /* of the newest call */

    (void)snprintf(path, sizeof(path), "%s/%s", BATON_CLIPS, name);
    return path;
}

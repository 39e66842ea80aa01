/* Cameras that begin and end, and a worker that dies. Whether all is gone when cameras come and go:
 * churn.js. */
#include "cmocka_all.h"

#include "lib/assert_ok.h"
#include "lib/process.h"
#include "viewer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct camera_options paced = {.is_paced = true};

/* The same clip by many names: each a URL of its own. */
static void open_clip(struct viewer *viewer, struct gallery *gallery, int number)
{
    char url[1024];

    (void)snprintf(url, sizeof(url), "%s/%.*srects.mp4", BATON_CLIPS, 2 * number,
                   "././././././././././");
    *viewer = (struct viewer){0};
    viewer_open(viewer, gallery, url, &paced);
}

static bool has_rings(void)
{
    static char maps[1 << 20];

    (void)process_read_file("/proc/self/maps", maps, sizeof(maps));
    return strstr(maps, "baton-frames") != NULL;
}

enum { CROWD = 10 };

static int started(const struct viewer *viewers)
{
    int count = 0;

    for (int i = 0; i < CROWD; i++) {
        struct camera_stats stats = viewer_stats(&viewers[i]);
        assert_int_equal(stats.restarts, 0);
        count += stats.pid > 0;
    }
    return count;
}

/* To start a process takes so long that a hundred of them would keep a backend from its reports. */
static void between_two_starts_the_loop_serves_others(void **state)
{
    struct viewer viewers[CROWD];
    struct gallery gallery;

    gallery_init(&gallery);
    for (int i = 0; i < CROWD; i++) {
        open_clip(&viewers[i], &gallery, i);
    }
    assert_in_range(started(viewers), 1, CROWD - 1);
    AWAIT_IN(&gallery, started(viewers) == CROWD);
    gallery_fini(&gallery);
}

static void on_frame_close(void *userdata, const struct frame *frame)
{
    struct viewer *viewers = userdata;

    assert_true(frame->width > 0);
    viewer_close(&viewers[0]);
    viewer_close(&viewers[1]);
}

static void a_callback_may_close_every_camera_its_own_too(void **state)
{
    struct gallery gallery;
    struct viewer viewers[2] = {0};
    const struct camera_callbacks mine = {.frame = on_frame_close, .userdata = viewers};

    gallery_init(&gallery);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            camera_open(&viewers[i].camera, gallery.pool, clip("rects.mp4"), &paced, &mine, NULL),
            0);
    }
    AWAIT_IN(&gallery, viewers[0].camera == NULL);
    gallery_fini(&gallery);
}

static pid_t watch(void *userdata)
{
    static struct gallery gallery;
    static struct viewer viewer;

    gallery_init(&gallery);
    viewer_open(&viewer, &gallery, clip("rects.mp4"), &paced);
    viewer_run_frames(&viewer, 1);
    return viewer_stats(&viewer).pid;
}

static void a_child_dies_with_its_worker(void **state)
{
    process_must_die_with_starter(watch, NULL);
}

/* The next poll fails, as where the kernel watches no descriptor more. */
static bool fails;

int __real_uv_poll_init(uv_loop_t *loop, uv_poll_t *poll, int fd);
int __wrap_uv_poll_init(uv_loop_t *loop, uv_poll_t *poll, int fd);

int __wrap_uv_poll_init(uv_loop_t *loop, uv_poll_t *poll, int fd)
{
    int rc = fails ? UV_ENOSPC : __real_uv_poll_init(loop, poll, fd);

    fails = false;
    return rc;
}

static void a_child_that_cannot_be_watched_is_ended_and_started_again(void **state)
{
    unsigned before = process_count_descriptors();
    struct viewer viewer = {0};
    struct gallery gallery;

    gallery_init(&gallery);
    fails = true;
    viewer_open(&viewer, &gallery, clip("rects.mp4"), &paced);
    viewer_run_frames(&viewer, 1);
    assert_false(fails);
    assert_true(has_rings());
    assert_int_equal(viewer_stats(&viewer).restarts, 1);
    assert_non_null(strstr(viewer_stats(&viewer).last_error, "no space left"));
    gallery_fini(&gallery);
    assert_int_equal(process_count_descriptors(), before);
    assert_false(has_rings());
}

static void a_program_that_is_missing_is_named(void **state)
{
    struct camera_pool_config config = {.program = "/nonexistent/baton-camera"};
    struct camera_pool *pool;

    ASSERT_FAILS(camera_pool_new(&pool, &config, failure), BATON_ENOENT,
                 "/nonexistent/baton-camera");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(between_two_starts_the_loop_serves_others),
        cmocka_unit_test(a_callback_may_close_every_camera_its_own_too),
        cmocka_unit_test(a_child_that_cannot_be_watched_is_ended_and_started_again),
        cmocka_unit_test(a_child_dies_with_its_worker),
        cmocka_unit_test(a_program_that_is_missing_is_named),
    };
    return cmocka_run_group_tests_name("integration_camera_life", tests, NULL, NULL);
}

/* usage: baton-bench-decode CLIP: decodes a clip through the camera's child, as baton-detector
 * does, as fast as it goes, and prints as JSON how many frames came and what that cost.
 *
 * "child_cpu_s" is the whole life of the child: start, fences, decoding, frames into shared
 * memory. "parent_cpu_s" is what this process spent from start to end.
 */
#include "base/clock.h"
#include "detector/camera/camera.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { LOOK_MS = 100 };

struct run {
    uv_loop_t loop;
    uv_timer_t look;
    struct camera_pool *pool;
    struct camera *camera;
    struct camera_stats stats;
    bool has_ended;
};

static void on_frame(void *userdata, const struct camera_frame *frame)
{
    (void)userdata;
    (void)frame;
}

static void finish(struct run *run)
{
    if (run->camera) {
        camera_stats(run->camera, &run->stats);
        camera_close(run->camera);
        run->camera = NULL;
        camera_pool_close(run->pool);
        uv_close((uv_handle_t *)&run->look, NULL);
    }
}

static void on_ended(void *userdata)
{
    struct run *run = userdata;

    run->has_ended = true;
    finish(run);
}

/* A camera that cannot be opened is tried again for ever, and nobody is told; for a clip that is
 * the end, and the camera knows why. */
static void on_look(uv_timer_t *timer)
{
    struct run *run = timer->data;

    camera_stats(run->camera, &run->stats);
    if (run->stats.last_error[0] != '\0') {
        finish(run);
    }
}

static double cpu_s(int who)
{
    struct rusage usage = {0};

    (void)getrusage(who, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static int decode(struct run *run, const char *clip, struct baton_error *reterr)
{
    const struct camera_pool_config config = {
        .loop = &run->loop, .backoff_min_ms = 1000, .backoff_max_ms = 1000, .allows_files = true};
    const struct camera_callbacks callbacks = {
        .frame = on_frame, .ended = on_ended, .userdata = run};
    const struct camera_options options = {0};
    char *path = realpath(clip, NULL); /* whole: the camera's child is in another folder */
    int code = path ? camera_pool_new(&run->pool, &config, reterr)
                    : error_set(reterr, error_from_errno(errno), "%s: %s", clip, strerror(errno));

    if (!code) {
        code = camera_open(&run->camera, run->pool, path, &options, &callbacks, reterr);
        if (code) {
            camera_pool_close(run->pool);
        } else {
            (void)uv_timer_init(&run->loop, &run->look);
            run->look.data = run;
            (void)uv_timer_start(&run->look, on_look, LOOK_MS, LOOK_MS);
        }
        (void)uv_run(&run->loop, UV_RUN_DEFAULT);
        camera_pool_free(run->pool);
    }
    free(path);
    if (!code && !run->has_ended) {
        code = error_set(reterr, BATON_EIO, "%s: %s", clip, run->stats.last_error);
    }
    return code;
}

int main(int argc, char **argv)
{
    struct run run = {0};
    struct baton_error error = {0};
    instant begin = clock_now();
    int code;

    if (argc != 2) {
        (void)fputs("usage: baton-bench-decode CLIP\n", stderr);
        return 2;
    }
    if (uv_loop_init(&run.loop) != 0) {
        return EXIT_FAILURE;
    }
    code = decode(&run, argv[1], &error);
    (void)uv_loop_close(&run.loop);
    if (code) {
        (void)fprintf(stderr, "baton-bench-decode: %s\n", error.message);
        return EXIT_FAILURE;
    }
    (void)printf("{\"frames\": %llu, \"wall_s\": %.4f, \"child_cpu_s\": %.4f, "
                 "\"parent_cpu_s\": %.4f}\n",
                 (unsigned long long)run.stats.decoded,
                 (double)instant_since(clock_now(), begin).ns / 1e9, cpu_s(RUSAGE_CHILDREN),
                 cpu_s(RUSAGE_SELF));
    return EXIT_SUCCESS;
}

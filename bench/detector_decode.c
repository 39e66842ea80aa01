/* usage: baton-bench-decode CLIP: decodes a clip through the camera's child, as baton-detector
 * does, as fast as it goes, and prints as JSON how many frames came and what that cost.
 *
 * "child_cpu_s" is the whole life of the child: start, fences, decoding, frames into shared
 * memory. "parent_cpu_s" is what this process spent from start to end.
 */
#include "detector/camera/camera.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static void on_frame(void *userdata, const struct frame *frame)
{
    (void)userdata;
    (void)frame;
}

static void on_ended(void *userdata)
{
    *(bool *)userdata = true;
}

static double cpu_s(int who)
{
    struct rusage usage = {0};

    (void)getrusage(who, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* A camera that cannot be opened is tried again for ever; for a clip that is the end. */
static int decode(uv_loop_t *loop, const char *clip, struct camera_stats *ret,
                  struct baton_error *reterr)
{
    const struct camera_pool_config config = {
        .loop = loop, .backoff_min_ms = 1000, .backoff_max_ms = 1000, .allows_files = true};
    bool has_ended = false;
    const struct camera_callbacks callbacks = {
        .frame = on_frame, .ended = on_ended, .userdata = &has_ended};
    const struct camera_options options = {0};
    struct camera_pool *pool = NULL;
    struct camera *camera = NULL;
    int code = camera_pool_new(&pool, &config, reterr);

    if (!code) {
        code = camera_open(&camera, pool, clip, &options, &callbacks, reterr);
        while (!code && !has_ended && !ret->last_error[0]) {
            (void)uv_run(loop, UV_RUN_ONCE);
            camera_stats(camera, ret);
        }
        camera_close(camera);
        camera_pool_close(pool);
        (void)uv_run(loop, UV_RUN_DEFAULT);
        camera_pool_free(pool);
    }
    return code || has_ended ? code : error_set(reterr, BATON_EIO, "%s: %s", clip, ret->last_error);
}

int main(int argc, char **argv)
{
    struct camera_stats stats = {0};
    struct baton_error error = {0};
    uv_loop_t loop;
    char *clip; /* its whole path: the camera's child is in another folder */
    int code;

    if (argc != 2 || (clip = realpath(argv[1], NULL)) == NULL || uv_loop_init(&loop) != 0) {
        (void)fputs("usage: baton-bench-decode CLIP, which must be there\n", stderr);
        return 2;
    }
    code = decode(&loop, clip, &stats, &error);
    (void)uv_loop_close(&loop);
    free(clip);
    if (code) {
        (void)fprintf(stderr, "baton-bench-decode: %s\n", error.message);
        return EXIT_FAILURE;
    }
    (void)printf("{\"frames\": %llu, \"child_cpu_s\": %.4f, "
                 "\"parent_cpu_s\": %.4f}\n",
                 (unsigned long long)stats.counts.decoded, cpu_s(RUSAGE_CHILDREN),
                 cpu_s(RUSAGE_SELF));
    return EXIT_SUCCESS;
}

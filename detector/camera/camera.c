#include "detector/camera/camera.h"

#include "base/invariant.h"
#include "detector/camera/camera_int.h"
#include "detector/helper/helper.h"

#include <libavutil/hwcontext.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the pool ---- */

int camera_pool_new(struct camera_pool **ret, const struct camera_pool_config *config,
                    struct baton_error *reterr)
{
    char found[PATH_MAX];
    const char *program = config->program != NULL ? config->program : found;
    struct camera_pool *pool;

    if (config->program == NULL ? !helper_find(found, "baton-camera")
                                : access(program, X_OK) != 0) {
        return error_set(reterr, BATON_ENOENT, "%s: no such program; is it installed?", program);
    }
    pool = calloc(1, sizeof(*pool));
    if (pool == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for cameras");
    }
    pool->config = *config;
    *ret = pool;
    return 0;
}

void camera_pool_close(struct camera_pool *pool)
{
    struct feed *next;

    for (struct feed *feed = pool->feeds; feed != NULL; feed = next) {
        next = feed->next;
        for (struct camera *camera = feed->cameras; camera != NULL; camera = camera->next) {
            camera->is_closed = true;
        }
        feed_sweep(feed);
    }
}

void camera_pool_free(struct camera_pool *pool)
{
    INVARIANT(pool == NULL || pool->feeds == NULL);
    free(pool);
}

/* ---- cameras ---- */

int camera_open(struct camera **ret, struct camera_pool *pool, const char *url,
                const struct camera_options *options, const struct camera_callbacks *callbacks,
                struct baton_error *reterr)
{
    struct camera *camera = calloc(1, sizeof(*camera));
    struct feed *feed;
    int rc;

    if (camera == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a camera");
    }
    rc = feed_of(&feed, pool, url, options, reterr);
    if (rc != 0) {
        free(camera);
        return rc;
    }
    camera->feed = feed;
    camera->callbacks = *callbacks;
    camera->interval = SPAN_MS(options->interval_ms);
    camera->motion_permille = options->motion_permille;
    camera->next = feed->cameras;
    feed->cameras = camera;
    if (feed->state == FEED_OVER) {
        feed_start(feed);
    } else {
        feed_update_interval(feed);
    }
    *ret = camera;
    return 0;
}

void camera_close(struct camera *camera)
{
    if (camera != NULL) {
        camera->is_closed = true;
        feed_update_interval(camera->feed);
        feed_sweep(camera->feed);
    }
}

void camera_set_interval(struct camera *camera, int interval_ms)
{
    camera->interval = SPAN_MS(interval_ms);
    feed_update_interval(camera->feed);
}

void camera_stats(const struct camera *camera, struct camera_stats *ret)
{
    const struct feed *feed = camera->feed;

    *ret = feed->stats;
    (void)snprintf(ret->url, sizeof(ret->url), "%s", feed->config.parts.masked);
    ret->is_online = feed->state == FEED_ONLINE;
    ret->still = camera->still;
    ret->subscribers = 0;
    for (struct camera *other = feed->cameras; other != NULL; other = other->next) {
        ret->subscribers += !other->is_closed;
    }
}

bool camera_hardware_is_known(const char *name, char ret_known[static CAMERA_HARDWARE_MAX])
{
    enum AVHWDeviceType type = AV_HWDEVICE_TYPE_NONE;
    bool is_known = false;

    ret_known[0] = '\0';
    while ((type = av_hwdevice_iterate_types(type)) != AV_HWDEVICE_TYPE_NONE) {
        const char *one = av_hwdevice_get_type_name(type);
        size_t used = strlen(ret_known);
        is_known |= strcmp(one, name) == 0;
        (void)snprintf(ret_known + used, CAMERA_HARDWARE_MAX - used, "%s%s", used > 0 ? ", " : "",
                       one);
    }
    return is_known;
}

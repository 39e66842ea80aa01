#include "detector/camera/watch.h"

#include <stdio.h>
#include <utlist.h>

enum { SNAPSHOT_MS = 5000 }; /* between two, unless the subscription says it */
_Static_assert((int)PROTOCOL_URL_MAX <= (int)MESSAGE_URL_MAX, "no backend's URL ends the worker");

static void source_close(struct watch_source *source)
{
    camera_close(source->camera);
    source->camera = NULL;
    source->is_online = false;
    source->refusal[0] = '\0';
}

static void watched_end(struct watched *watched)
{
    DL_DELETE(watched->watch->all, watched);
    source_close(&watched->stream);
    source_close(&watched->snapshots);
}

void watch_end(struct watch *watch)
{
    while (watch->all != NULL) {
        watched_end(watch->all);
    }
}

/* ---- callbacks of cameras ---- */

static void show(struct watched *watched, const struct frame *frame)
{
    const struct watch *watch = watched->watch;
    bool is_earlier = instant_before(frame->captured, watched->seen_at);

    if (!is_earlier) {
        watched->seen_at = frame->captured;
    }
    watch->on_frame(watch->userdata, watched->images, frame,
                    is_earlier ? WATCH_STANDS_IN : WATCH_SHOWN);
}

static void on_frame(void *userdata, const struct frame *frame)
{
    struct watch_source *source = userdata;
    struct watched *watched = source->watched;
    const struct watch *watch = watched->watch;

    if (source == &watched->stream || !watched->stream.is_online) {
        show(watched, frame);
    } else {
        watch->on_frame(watch->userdata, watched->images, frame, WATCH_ASIDE);
    }
}

/* Of snapshots. */
static int interval_of(const struct watched *watched)
{
    int64_t wanted_ms = watched->images->subscription.snapshot_interval_ms;

    return wanted_ms > 0 ? (int)wanted_ms : SNAPSHOT_MS;
}

static void set_online(const struct watched *watched)
{
    struct images *images = watched->images;

    images->subscription.is_online = watched->stream.is_online || watched->snapshots.is_online;
    if (!images->subscription.is_online) {
        image_set_boxes(images, IMAGE_SHOWN, NULL, 0); /* unknown now */
    }
}

static void on_online(void *userdata, bool is_online)
{
    struct watch_source *source = userdata;
    struct watched *watched = source->watched;

    source->is_online = is_online;
    set_online(watched);
    if (!is_online && source == &watched->stream) {
        camera_show_newest(watched->snapshots.camera); /* it stands in */
    }
}

static void source_open(struct watch_source *source, const char *url, int interval_ms)
{
    struct watch *watch = source->watched->watch;
    const char *identifier = source->watched->images->subscription.identifier;
    const struct camera_callbacks callbacks = {
        .frame = on_frame, .online = on_online, .userdata = source, .label = identifier};
    struct camera_options options = watch->options;
    struct baton_error error;

    if (interval_ms > 0) {
        options.interval_ms = interval_ms;
    }
    source->refusal[0] = '\0';
    if (camera_open(&source->camera, watch->pool, url, &options, &callbacks, &error) != 0) {
        source->camera = NULL;
        (void)snprintf(source->refusal, sizeof(source->refusal), "%s", error.message);
        log_warning(watch->logger, "camera-refused", LOG_STR("subscription", identifier),
                    LOG_STR("reason", error.message));
    }
}

/* ---- changes of subscriptions ---- */

bool watch_stats(const struct watched *watched, enum image_source from, struct camera_stats *ret)
{
    const struct watch_source *source =
        from == IMAGE_STREAM ? &watched->stream : &watched->snapshots;

    *ret = (struct camera_stats){0};
    if (source->camera != NULL) {
        camera_stats(source->camera, ret);
        return true;
    }
    (void)snprintf(ret->last_error, sizeof(ret->last_error), "%s", source->refusal);
    return source->refusal[0] != '\0';
}

static void use_stream(struct watched *watched)
{
    const char *url = watched->images->subscription.rtsp_url;
    /* The new one is opened first: if it is another name of an open camera, that one stays open. */
    struct camera *last = watched->stream.camera;

    watched->stream.camera = NULL;
    source_close(&watched->stream);
    if (url[0] != '\0') {
        source_open(&watched->stream, url, 0);
    }
    camera_close(last);
}

static void use_snapshots(struct watched *watched)
{
    const char *url = watched->images->subscription.snapshot_url;
    struct watch_source *source = &watched->snapshots;

    if (url != NULL) {
        source_open(source, url, interval_of(watched));
        camera_show_newest(source->camera); /* another subscription's */
    }
}

static void add(struct watch *watch, struct watched *watched, struct images *images)
{
    watched->watch = watch;
    watched->images = images;
    watched->seen_at = INSTANT_PAST;
    watched->stream.watched = watched;
    watched->snapshots.watched = watched;
    DL_APPEND(watch->all, watched);
    use_stream(watched);
    use_snapshots(watched);
}

static void update(struct watched *watched, unsigned changes)
{
    struct watch_source *snapshots = &watched->snapshots;

    if ((changes & CHANGE_CAMERA) != 0) {
        image_drop(watched->images, IMAGE_STREAM);
        use_stream(watched);
    }
    if ((changes & CHANGE_INTERVAL) != 0 && snapshots->camera != NULL) {
        camera_set_interval(snapshots->camera, interval_of(watched));
    }
    if ((changes & CHANGE_SNAPSHOT) != 0) {
        image_drop(watched->images, IMAGE_SNAPSHOT);
        source_close(snapshots);
    }
    if (snapshots->camera == NULL) { /* one that was refused is tried again */
        use_snapshots(watched);
    }
    set_online(watched);
    if ((changes & CHANGE_CAMERA) != 0) {
        camera_show_newest(snapshots->camera);
    }
}

void watch_set_interval(struct watch *watch, int interval_ms)
{
    struct watched *watched = NULL;

    watch->options.interval_ms = interval_ms;
    DL_FOREACH (watch->all, watched) {
        if (watched->stream.camera != NULL) {
            camera_set_interval(watched->stream.camera, interval_ms);
        }
    }
}

void watch_event(struct watch *watch, struct watched *watched, const struct worker_event *event)
{
    if (event->type == WORKER_SUBSCRIPTION_ADDED) {
        add(watch, watched, (struct images *)event->subscription);
    } else if (event->type == WORKER_SUBSCRIPTION_UPDATED) {
        update(watched, event->changes);
    } else if (event->type == WORKER_SUBSCRIPTION_REMOVED) {
        watched_end(watched);
    }
}

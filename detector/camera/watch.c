#include "detector/camera/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum { SNAPSHOT_MS = 5000 }; /* between two, unless the subscription says it */
_Static_assert((int)PROTOCOL_URL_MAX <= (int)MESSAGE_URL_MAX, "no backend's URL ends the worker");

struct source {
    struct watched *watched;
    struct camera *camera; /* NULL: closed */
    bool is_online;
    char refusal[BATON_ERROR_MESSAGE_MAX]; /* why it is not open; "" if it is open or need not be */
};

struct watched {
    struct watch *watch;
    UT_hash_handle hh;
    int snapshot_ms;
    struct source stream, snapshots;
    instant seen_at; /* when the last frame that its model saw was captured */
    char identifier[];
};

struct watch {
    struct camera_pool *pool;
    struct camera_options options;
    struct logger *logger;
    struct watch_hooks hooks;
    struct watched *all; /* by identifier */
};

struct watch *watch_new(struct camera_pool *pool, const struct camera_options *options,
                        struct logger *logger, const struct watch_hooks *hooks)
{
    struct watch *watch = calloc(1, sizeof(*watch));

    if (watch != NULL) {
        watch->pool = pool;
        watch->options = *options;
        watch->logger = logger;
        watch->hooks = *hooks;
    }
    return watch;
}

static void source_close(struct source *source)
{
    camera_close(source->camera);
    source->camera = NULL;
    source->is_online = false;
    source->refusal[0] = '\0';
}

static void watched_free(struct watched *watched)
{
    source_close(&watched->stream);
    source_close(&watched->snapshots);
    free(watched);
}

void watch_free(struct watch *watch)
{
    struct watched *watched, *next;

    if (watch == NULL) {
        return;
    }
    watched = watch->all;
    HASH_CLEAR(hh, watch->all); /* which leaves the list of them */
    for (; watched != NULL; watched = next) {
        next = watched->hh.next;
        watched_free(watched);
    }
    free(watch);
}

/* ---- callbacks of cameras ---- */

static void show(struct watched *watched, const struct frame *frame)
{
    const struct watch_hooks *hooks = &watched->watch->hooks;
    bool is_earlier = instant_before(frame->captured, watched->seen_at);

    if (!is_earlier) {
        watched->seen_at = frame->captured;
    }
    hooks->frame(hooks->userdata, watched->identifier, frame,
                 is_earlier ? WATCH_STANDS_IN : WATCH_SHOWN);
}

static void on_frame(void *userdata, const struct frame *frame)
{
    struct source *source = userdata;
    struct watched *watched = source->watched;
    const struct watch_hooks *hooks = &watched->watch->hooks;

    if (source == &watched->stream || !watched->stream.is_online) {
        show(watched, frame);
    } else {
        hooks->frame(hooks->userdata, watched->identifier, frame, WATCH_ASIDE);
    }
}

/* Returns the newest snapshot unless the next one is late, or NULL. After a sleep of the machine it
 * may be late before the camera is reported as offline. */
static const struct frame *newest_in_time(const struct watched *watched)
{
    const struct camera *snapshots = watched->snapshots.camera;
    const struct camera_options *options = &watched->watch->options;
    int timeout_ms = options->stall_ms > 0 ? options->stall_ms : CAMERA_STALL_MS;
    const struct frame *frame = snapshots != NULL ? camera_newest(snapshots) : NULL;

    return frame != NULL && instant_since(clock_now(), frame->captured).ns <=
                                SPAN_MS((int64_t)watched->snapshot_ms + timeout_ms).ns
               ? frame
               : NULL;
}

/* The stream went offline. */
static void stand_in(struct watched *watched)
{
    const struct frame *frame = newest_in_time(watched);

    if (frame != NULL) {
        show(watched, frame);
    }
}

static void tell(const struct watched *watched)
{
    const struct watch_hooks *hooks = &watched->watch->hooks;

    hooks->online(hooks->userdata, watched->identifier,
                  watched->stream.is_online || watched->snapshots.is_online);
}

static void tell_away(const struct source *source, bool is_gone)
{
    const struct watched *watched = source->watched;
    const struct watch_hooks *hooks = &watched->watch->hooks;

    hooks->away(hooks->userdata, watched->identifier,
                source == &watched->stream ? IMAGE_STREAM : IMAGE_SNAPSHOT, is_gone);
}

static void on_online(void *userdata, bool is_online)
{
    struct source *source = userdata;
    struct watched *watched = source->watched;

    source->is_online = is_online;
    if (!is_online) {
        tell_away(source, false);
    }
    tell(watched);
    if (!is_online && source == &watched->stream) {
        stand_in(watched);
    }
}

static void source_open(struct source *source, const char *url, int interval_ms)
{
    struct watch *watch = source->watched->watch;
    const struct camera_callbacks callbacks = {.frame = on_frame,
                                               .online = on_online,
                                               .userdata = source,
                                               .label = source->watched->identifier};
    struct camera_options options = watch->options;
    struct baton_error error;

    if (interval_ms > 0) {
        options.interval_ms = interval_ms;
    }
    source->refusal[0] = '\0';
    if (camera_open(&source->camera, watch->pool, url, &options, &callbacks, &error) != 0) {
        source->camera = NULL;
        (void)snprintf(source->refusal, sizeof(source->refusal), "%s", error.message);
        log_warning(watch->logger, "camera-refused",
                    LOG_STR("subscription", source->watched->identifier),
                    LOG_STR("reason", error.message));
    }
}

/* ---- changes of subscriptions ---- */

bool watch_stats(const struct watch *watch, const char *identifier, enum image_source from,
                 struct camera_stats *ret)
{
    const struct watched *watched;
    const struct source *source;

    HASH_FIND_STR(watch->all, identifier, watched);
    if (watched == NULL) {
        return false;
    }
    source = from == IMAGE_STREAM ? &watched->stream : &watched->snapshots;
    *ret = (struct camera_stats){0};
    if (source->camera != NULL) {
        camera_stats(source->camera, ret);
        return true;
    }
    (void)snprintf(ret->last_error, sizeof(ret->last_error), "%s", source->refusal);
    return source->refusal[0] != '\0';
}

static void use_stream(struct watched *watched, const struct subscription *subscription)
{
    /* The new one is opened first: if it is another name of an open camera, that one stays open. */
    struct camera *last = watched->stream.camera;

    watched->stream.camera = NULL;
    source_close(&watched->stream);
    if (subscription->rtsp_url[0] != '\0') {
        source_open(&watched->stream, subscription->rtsp_url, 0);
    }
    camera_close(last);
}

static void use_interval(struct watched *watched, const struct subscription *subscription)
{
    watched->snapshot_ms = subscription->snapshot_interval_ms > 0
                               ? (int)subscription->snapshot_interval_ms
                               : SNAPSHOT_MS;
    if (watched->snapshots.camera != NULL) {
        camera_set_interval(watched->snapshots.camera, watched->snapshot_ms);
    }
}

static void use_snapshots(struct watched *watched, const struct subscription *subscription)
{
    struct source *source = &watched->snapshots;

    if (subscription->snapshot_url != NULL) {
        source_open(source, subscription->snapshot_url, watched->snapshot_ms);
        if (newest_in_time(watched) != NULL) { /* another subscription's */
            camera_show_newest(source->camera);
        }
    }
}

static void add(struct watch *watch, const struct subscription *subscription)
{
    size_t bytes = strlen(subscription->identifier);
    struct watched *watched = calloc(1, sizeof(*watched) + bytes + 1);

    if (watched != NULL) {
        memcpy(watched->identifier, subscription->identifier, bytes);
        HASH_ADD_KEYPTR(hh, watch->all, watched->identifier, bytes, watched);
    }
    if (watched == NULL || watched->hh.tbl == NULL) {
        free(watched);
        log_error(watch->logger, "camera-refused",
                  LOG_STR("subscription", subscription->identifier),
                  LOG_STR("reason", "out of memory"));
        return;
    }
    watched->watch = watch;
    watched->seen_at = INSTANT_PAST;
    watched->stream.watched = watched;
    watched->snapshots.watched = watched;
    use_interval(watched, subscription);
    use_stream(watched, subscription);
    use_snapshots(watched, subscription);
}

static void update(struct watched *watched, const struct worker_event *event)
{
    if ((event->changes & CHANGE_CAMERA) != 0) {
        use_stream(watched, event->subscription);
    }
    if ((event->changes & CHANGE_INTERVAL) != 0) {
        use_interval(watched, event->subscription);
    }
    if ((event->changes & CHANGE_SNAPSHOT) != 0) {
        source_close(&watched->snapshots);
        tell_away(&watched->snapshots, true);
    }
    if (watched->snapshots.camera == NULL) { /* one that was refused is tried again */
        use_snapshots(watched, event->subscription);
    }
    tell(watched);
    if ((event->changes & CHANGE_CAMERA) != 0) {
        stand_in(watched);
    }
}

void watch_set_interval(struct watch *watch, int interval_ms)
{
    watch->options.interval_ms = interval_ms;
    for (struct watched *watched = watch->all; watched != NULL; watched = watched->hh.next) {
        if (watched->stream.camera != NULL) {
            camera_set_interval(watched->stream.camera, interval_ms);
        }
    }
}

void watch_event(struct watch *watch, const struct worker_event *event)
{
    struct watched *watched = NULL;

    if (event->type == WORKER_SUBSCRIPTION_ADDED) {
        add(watch, event->subscription);
        return;
    }
    if (event->type == WORKER_SUBSCRIPTION_UPDATED || event->type == WORKER_SUBSCRIPTION_REMOVED) {
        HASH_FIND_STR(watch->all, event->identifier, watched);
    }
    if (watched != NULL && event->type == WORKER_SUBSCRIPTION_REMOVED) {
        HASH_DEL(watch->all, watched);
        watched_free(watched);
    } else if (watched != NULL) {
        update(watched, event);
    }
}

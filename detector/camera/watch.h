/* The cameras of a worker's subscriptions, opened, exchanged and closed as these change.
 *
 *   service's `changed` ─▶ watch_event ─▶ camera_open, camera_close
 *   service_frame, the models ◀─ each frame
 *
 *   snapshots   S · · · · S · · · · S · · · · S · · · · S     every snapshotInterval, always
 *   stream      ssssssssssssss┤ offline           ├ssssssss
 *   shown       ssssssssssssssS · · S · · · · S · · sssssss
 *
 * A subscription shows its stream. If it names a snapshotUrl, snapshots are requested all the time,
 * and replace the stream while it is offline: the newest one at once, if it is not older than its
 * interval and timeout, then the following ones. While the stream is shown, snapshots are
 * WATCH_ASIDE and for no model: two sizes and two moments under one name would be two objects to a
 * tracker. A subscription without a stream (rtspUrl is "") has its snapshots alone.
 */
#ifndef DETECTOR_CAMERA_WATCH_H
#define DETECTOR_CAMERA_WATCH_H

#include "detector/camera/camera.h"
#include "detector/worker.h"

/* The meaning of a frame for its subscription. */
enum watch_role {
    WATCH_ASIDE,     /* the newest snapshot, while the stream is shown */
    WATCH_SHOWN,     /* shown from now on, also to its model */
    WATCH_STANDS_IN, /* shown from now on, but captured before frames that its model has seen */
};

/* The cameras of a subscription: a part of its entry, which only watch.c looks into. */
struct watched {
    struct watched *prev, *next;
    struct watch *watch;
    struct images *images; /* the beginning of its entry */
    struct watch_source {
        struct watched *watched;
        struct camera *camera; /* NULL: closed */
        bool is_online;
        char refusal[BATON_ERROR_MESSAGE_MAX]; /* why it is not open; "": it is, or need not be */
    } stream, snapshots;
    instant seen_at; /* when the last frame that its model saw was captured */
};

typedef void watch_frame(void *userdata, struct images *images, const struct frame *frame,
                         enum watch_role role);

/* On the loop's thread. All but the last is its user's, and borrowed. */
struct watch {
    struct camera_pool *pool;
    struct camera_options options; /* of streams and, but for the interval, of snapshots */
    struct logger *logger;
    watch_frame *on_frame;
    void *userdata;
    struct watched *all;
};

/* Closes its cameras, before the pool is freed. */
void watch_end(struct watch *watch);

/* Takes a change of a subscription whose entry begins with its images: these lose what was another
 * camera's. It may be online or offline from now on, and is shown snapshots that are there already.
 * A camera that cannot be opened because of its URL is logged and stays offline. */
void watch_event(struct watch *watch, struct watched *watched, const struct worker_event *event);

/* Sets the least time between two frames of all streams, also of later ones; 0: every frame. */
void watch_set_interval(struct watch *watch, int interval_ms);

/* Returns the state of a subscription's stream or snapshots; last_error has the reason if the URL
 * was refused. False: it has none. */
bool watch_stats(const struct watched *watched, enum image_source source, struct camera_stats *ret);

#endif

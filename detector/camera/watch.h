/* The cameras of a worker's subscriptions, opened, exchanged and closed as these change.
 *
 *   service's `changed` ─▶ watch_event ─▶ camera_open, camera_close
 *   service_frame, service_online, the models ◀─ hooks, by identifier
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

struct watch; /* opaque; on the loop's thread */

/* The meaning of a frame for its subscription. */
enum watch_role {
    WATCH_ASIDE,     /* the newest snapshot, while the stream is shown */
    WATCH_SHOWN,     /* shown from now on, also to its model */
    WATCH_STANDS_IN, /* shown from now on, but captured before frames that its model has seen */
};

struct watch_hooks {
    void (*frame)(void *userdata, const char *identifier, const struct frame *frame,
                  enum watch_role role);
    /* That source has no frames for a while. With `is_gone` it is exchanged or removed, and what
     * was kept of it is no longer this subscription's. */
    void (*away)(void *userdata, const char *identifier, enum image_source source, bool is_gone);
    void (*online)(void *userdata, const char *identifier, bool is_online); /* when it may change */
    void *userdata;
};

/* `options` are for every stream and snapshot, except for the interval of snapshots. `logger` and
 * the pool are borrowed. Returns NULL if memory is short. */
struct watch *watch_new(struct camera_pool *pool, const struct camera_options *options,
                        struct logger *logger, const struct watch_hooks *hooks);
/* Closes its cameras; call it before the pool is freed. NULL is allowed. */
void watch_free(struct watch *watch);

/* Calls hooks if the change takes a camera offline, or finds snapshots that are there already. A
 * camera that cannot be opened because of its URL is logged and stays offline. */
void watch_event(struct watch *watch, const struct worker_event *event);

/* Sets the least time between two frames of all streams, also of later ones; 0: every frame. */
void watch_set_interval(struct watch *watch, int interval_ms);

/* Returns the state of a subscription's stream or snapshots; last_error has the reason if the URL
 * was refused. False: there is no such subscription, or it has none. */
bool watch_stats(const struct watch *watch, const char *identifier, enum image_source source,
                 struct camera_stats *ret);

#endif

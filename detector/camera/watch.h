/* The cameras that a worker's subscriptions want: opened, exchanged and closed as they change.
 *
 *   service's `changed` ─▶ watch_event ─▶ camera_open, camera_close
 *   service_frame, service_online, the models ◀─ hooks, by identifier
 *
 *   snapshots   S · · · · S · · · · S · · · · S · · · · S     every snapshotInterval, always
 *   stream      ssssssssssssss┤ offline           ├ssssssss
 *   shown       ssssssssssssssS · · S · · · · S · · sssssss
 *
 * A subscription shows its stream. If it names a snapshotUrl, that is asked for all the time, and
 * stands in while the stream is offline: the newest one at once, if it is not older than its
 * interval and timeout, then those that follow. While the stream is shown, snapshots are
 * WATCH_ASIDE and for no model: two sizes and two moments under one name would be two objects to a
 * tracker. One without a stream (rtspUrl is "") has its snapshots alone.
 */
#ifndef DETECTOR_CAMERA_WATCH_H
#define DETECTOR_CAMERA_WATCH_H

#include "detector/camera/camera.h"
#include "detector/worker.h"

struct watch; /* opaque; on the loop's thread */

/* The meaning of a frame for its subscription. */
enum watch_role {
    WATCH_ASIDE,     /* the newest snapshot, while the stream is shown */
    WATCH_SHOWN,     /* its picture from now on, and its model's */
    WATCH_STANDS_IN, /* its picture from now on; from before what its model has seen already */
};

struct watch_hooks {
    void (*frame)(void *userdata, const char *identifier, const struct camera_frame *frame,
                  enum watch_role role);
    /* That source has no frames for a while; `is_gone`: it is another one or none from now on, and
     * what was kept of it is not this subscription's any more. May be NULL. */
    void (*away)(void *userdata, const char *identifier, enum image_source source, bool is_gone);
    void (*online)(void *userdata, const char *identifier, bool is_online); /* on change */
    void *userdata;
};

/* `options` of every stream and snapshot, but for the interval of snapshots. `logger` is borrowed,
 * and so is the pool. NULL: out of memory. */
struct watch *watch_new(struct camera_pool *pool, const struct camera_options *options,
                        struct logger *logger, const struct watch_hooks *hooks);
void watch_free(struct watch *watch); /* closes its cameras; before the pool. NULL allowed */

/* Calls hooks where what changed takes a camera offline, or finds snapshots that are there already.
 * A camera that cannot be opened (a URL that is none) is logged and stays offline.
 */
void watch_event(struct watch *watch, const struct worker_event *event);

/* Of all streams, those that come later too: at least so long between two frames; 0: every one. */
void watch_set_interval(struct watch *watch, int interval_ms);

/* The state of a subscription's stream or snapshots; if it was refused, the reason (last_error).
 * False: there is no such subscription, or it has none. */
bool watch_stats(const struct watch *watch, const char *identifier, enum image_source source,
                 struct camera_stats *ret);

#endif

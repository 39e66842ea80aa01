/* The cameras that a worker's subscriptions want: opened, exchanged and closed as they change.
 *
 *   service's `changed` ─▶ watch_event ─▶ camera_open, camera_close
 *   service_frame, service_online, the models ◀─ hooks, by identifier
 *
 * A subscription's frames come from its stream. If it names a snapshotUrl, that stands in while the
 * stream is offline: asked every snapshotInterval, and left alone while the stream is online. One
 * without a stream (rtspUrl is "") has its snapshots alone.
 */
#ifndef DETECTOR_CAMERA_WATCH_H
#define DETECTOR_CAMERA_WATCH_H

#include "detector/camera/camera.h"
#include "detector/worker.h"

struct watch; /* opaque; on the loop's thread */

struct watch_hooks {
    void (*frame)(void *userdata, const char *identifier, const struct camera_frame *frame);
    void (*online)(void *userdata, const char *identifier, bool is_online); /* on change */
    void *userdata;
};

/* `options` of every stream and snapshot, but for the interval of snapshots. `logger` is borrowed,
 * and so is the pool. NULL: out of memory. */
struct watch *watch_new(struct camera_pool *pool, const struct camera_options *options,
                        struct logger *logger, const struct watch_hooks *hooks);
void watch_free(struct watch *watch); /* closes its cameras; before the pool. NULL allowed */

/* Calls no hook but `online`, where what changed takes a camera offline or finds it online already.
 * A camera that cannot be opened (a URL that is none) is logged and stays offline.
 */
void watch_event(struct watch *watch, const struct worker_event *event);

/* Of all streams, those that come later too: at least so long between two frames; 0: every one. */
void watch_set_interval(struct watch *watch, int interval_ms);

enum watch_part { WATCH_STREAM, WATCH_SNAPSHOTS };

/* What is known of a subscription's stream, or of its snapshots while they stand in; of one that
 * was refused, why (last_error). False: there is no such subscription or it has none. */
bool watch_stats(const struct watch *watch, const char *identifier, enum watch_part part,
                 struct camera_stats *ret);

#endif

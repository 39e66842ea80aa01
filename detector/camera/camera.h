/* Cameras: each distinct URL is opened once, in a child process of its own, for all its users.
 *
 *   camera_open ─▶ feed of that URL ─▶ child (baton-camera) ─▶ ring of frames
 *        │              │ STARTING ──first frame──▶ ONLINE ──stall, error, end, crash──┐
 *        │              │    ▲                                                        ▼
 *        │              │    └───────────────── after a pause ◀──────────────────── WAITING
 *   frame(), online() ◀─┘
 *
 * A camera that stalls, errors or crashes is reopened after a pause that doubles, with spread, and
 * is offline meanwhile, without end. Frames stay where the decoder put them, in memory that is
 * shared with the child, and a held frame is not overwritten; nothing is copied unless more than
 * CAMERA_HELD_MAX are held. The newest frame comes first: a user that holds frames for long misses
 * some, and delays no other user.
 *
 * All functions and callbacks run on the loop's thread.
 */
#ifndef DETECTOR_CAMERA_CAMERA_H
#define DETECTOR_CAMERA_CAMERA_H

#include "base/log.h"
#include "detector/camera/feed.h"
#include "detector/camera/frames.h"

#include <uv.h>

enum { CAMERA_BACKOFF_MIN_MS = 1000, CAMERA_BACKOFF_MAX_MS = 60000 };

struct camera_pool; /* opaque */
struct camera;      /* opaque: one subscription to a feed */

struct camera_pool_config {
    uv_loop_t *loop;
    struct logger *logger; /* borrowed; NULL: silent */
    const char *program;   /* path of baton-camera; NULL: found beside this program */
    int backoff_min_ms;    /* 0: CAMERA_BACKOFF_MIN_MS */
    int backoff_max_ms;    /* 0: CAMERA_BACKOFF_MAX_MS */
    bool allows_files;     /* a URL without a scheme is the path of a clip; for tries and tests */
};

/* Its callbacks may close cameras. Returns BATON_ENOENT if there is no such program. */
int camera_pool_new(struct camera_pool **ret, const struct camera_pool_config *config,
                    struct baton_error *reterr);
/* Ends every child; no camera of the pool may be used any more. The caller runs the loop until it
 * is done, and then frees the pool. */
void camera_pool_close(struct camera_pool *pool);
void camera_pool_free(struct camera_pool *pool); /* NULL allowed */

/* A URL of rtsp or rtsps is a stream, one of http or https is snapshots. Returns BATON_EINVAL or
 * BATON_EFULL; a camera that does not answer is no error, but offline. No error names the URL. */
int camera_open(struct camera **ret, struct camera_pool *pool, const char *url,
                const struct camera_options *options, const struct camera_callbacks *callbacks,
                struct baton_error *reterr);
/* Ends its callbacks. Frames that are held stay valid. NULL is allowed. */
void camera_close(struct camera *camera);
void camera_set_interval(struct camera *camera, int interval_ms);

/* Returns the newest frame of snapshots that are online, for any of its subscriptions, or NULL if
 * there is none or the camera is a stream. The frame is borrowed until the next call. */
const struct camera_frame *camera_newest(const struct camera *camera);
/* Shows the camera that frame as if it arrived now, since a later subscription may have to wait
 * long for the next one. */
void camera_show_newest(struct camera *camera);

void camera_stats(const struct camera *camera, struct camera_stats *ret);

#endif

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
 * shared with the child; a held frame is not overwritten, and nothing is copied. The newest frame
 * comes first: a user that holds frames for long misses some, and delays no other user.
 *
 * All functions and callbacks run on the loop's thread.
 */
#ifndef DETECTOR_CAMERA_CAMERA_H
#define DETECTOR_CAMERA_CAMERA_H

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "detector/camera/message.h"
#include "detector/camera/ring.h"
#include "detector/camera/url.h"
#include "detector/image.h"

#include <uv.h>

enum {
    CAMERA_STALL_MS = 10000,
    CAMERA_OPEN_MS = 10000,
    CAMERA_HARDWARE_MAX = 256,
};

struct camera_pool; /* opaque */
struct camera;      /* opaque: one subscription to a feed */

struct camera_pool_config {
    uv_loop_t *loop;
    struct logger *logger; /* borrowed; NULL: silent */
    const char *program;   /* path of baton-camera, borrowed; NULL: found beside this program */
    int backoff_min_ms;    /* the pause before a camera is opened again, at first */
    int backoff_max_ms;
    bool allows_files; /* a URL without a scheme is the path of a clip; for tries and tests */
};

struct camera_callbacks {
    /* The frame is borrowed during the call; see frame_ref(). While RING_HELD_MAX frames of a feed
     * are held, it skips newer ones. */
    void (*frame)(void *userdata, const struct frame *frame);
    /* Called on a change; a camera is offline at first, without a call. May be NULL. */
    void (*online)(void *userdata, bool is_online);
    /* The clip was played to its end; it plays again only if it is opened again. May be NULL. */
    void (*ended)(void *userdata);
    void *userdata;
    const char *label; /* the camera's user, for the log, borrowed; NULL: none */
};

/* How fast these counters grow; 0 while it is offline. */
struct camera_fps {
    double received, decoded, dropped, shown;
};

struct camera_stats {
    char url[URL_MASKED_MAX];
    bool is_online;
    char codec[32], hardware[32]; /* "" until opened; hardware "": software */
    int width, height;
    double nominal_fps;   /* 0: unknown */
    span duration;        /* of a clip, by its header; 0: unknown */
    unsigned subscribers; /* of the feed */
    int pid;              /* of the child; 0: none */
    struct camera_counts counts;
    uint64_t shown;   /* handed to subscribers */
    uint64_t skipped; /* replaced by a newer one, or too many were held */
    uint64_t still;   /* not shown to this subscription, because nothing moved */
    struct camera_fps fps;
    uint64_t restarts;
    char last_error[BATON_ERROR_MESSAGE_MAX]; /* "": none yet */
};

/* Its callbacks may close cameras. Returns BATON_ENOENT if there is no such program. */
int camera_pool_new(struct camera_pool **ret, const struct camera_pool_config *config,
                    struct baton_error *reterr);
/* Ends every child; no camera of the pool may be used any more. The caller runs the loop until it
 * is done, and then frees the pool. */
void camera_pool_close(struct camera_pool *pool);
void camera_pool_free(struct camera_pool *pool); /* NULL allowed */

/* A URL of rtsp or rtsps is a stream, one of http or https is snapshots; it has at most
 * MESSAGE_URL_MAX bytes, as in the protocol. Returns BATON_EINVAL; a camera that does not answer is
 * no error, but offline. No error names the URL. */
int camera_open(struct camera **ret, struct camera_pool *pool, const char *url,
                const struct camera_options *options, const struct camera_callbacks *callbacks,
                struct baton_error *reterr);
/* Ends its callbacks. Frames that are held stay valid. NULL is allowed. */
void camera_close(struct camera *camera);
void camera_set_interval(struct camera *camera, int interval_ms);

/* Of snapshots: shows the newest one now, whether anything moved or not, unless the next one is
 * late: for a subscription that did not need it when it came. NULL is allowed. */
void camera_show_newest(struct camera *camera);

void camera_stats(const struct camera *camera, struct camera_stats *ret);

/* True if this FFmpeg knows the hardware decoder's name; only opening a stream shows whether the
 * machine has the device. `ret_known` lists the known names, separated by commas. */
bool camera_hardware_is_known(const char *name, char ret_known[static CAMERA_HARDWARE_MAX]);

#endif

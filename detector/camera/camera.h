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

#include "base/clock.h"
#include "base/log.h"
#include "detector/camera/url.h"
#include "detector/image.h"

#include <uv.h>

enum {
    CAMERA_FEEDS_MAX = 2048, /* distinct URLs: a subscription may have a stream and snapshots */
    CAMERA_HELD_MAX = 5,     /* frames of one feed that may be held where they were decoded; */
    CAMERA_COPIED_MAX = 32,  /* further ones are copies, of which there may be so many */
    CAMERA_KEPT_MAX = 2,     /* of all these for an unknown time */
    CAMERA_STALL_MS = 10000,
    CAMERA_OPEN_MS = 10000,
    CAMERA_BACKOFF_MIN_MS = 1000,
    CAMERA_BACKOFF_MAX_MS = 60000,
    CAMERA_SNAPSHOT_MS = 5000,
};

#define CAMERA_NO_PTS INT64_MIN

struct camera_frame {
    struct frame picture; /* its planes are read-only; their content comes from the child */
    bool is_full_range;   /* luma of 0 to 255, not 16 to 235 */
    bool is_bt709;        /* else BT.601 */
    uint64_t number;      /* grows with each frame of a feed, also over restarts; not by one */
    int64_t pts_us;       /* of the stream's own clock; CAMERA_NO_PTS */
    instant captured;     /* when it had arrived */
    int64_t captured_unix_ms;
    enum image_source source; /* IMAGE_STREAM: of a clip, too */
};

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

/* The first user's options apply to the feed; each user has its own `interval_ms`. */
struct camera_options {
    int interval_ms;      /* at least so long between two frames; 0: every frame; of http URLs how
                             often to ask, 0: CAMERA_SNAPSHOT_MS */
    int stall_ms;         /* no frame for so long: reopened. 0: CAMERA_STALL_MS */
    int open_ms;          /* 0: CAMERA_OPEN_MS */
    bool uses_udp;        /* RTSP media over UDP; else over the connection */
    const char *hardware; /* of FFmpeg: "vaapi", "cuda"; NULL: software. Software if not there */
    const char *ca_file;  /* certificates that rtsps and https are checked against; NULL: the
                             system's. Longer than MESSAGE_PATH_MAX: BATON_EINVAL */
    bool trusts_any;      /* rtsps, https: whatever certificate is shown */
    bool is_paced;        /* clip: at its own speed. Else as fast as it decodes */
    bool is_lossless;     /* clip: every frame, the next when this one was given back */
    const char *label;    /* the camera's user, for the log; NULL: none */
    int motion_permille;  /* above 0: only frames in which so much of the picture moved */
};

struct camera_callbacks {
    /* Borrowed during the call, see camera_frame_ref. */
    void (*frame)(void *userdata, const struct camera_frame *frame);
    void (*online)(void *userdata, bool is_online); /* on change; false at first, untold; or NULL */
    /* A clip has been played to its end; it is played again only if it is opened again. May be
     * NULL. */
    void (*ended)(void *userdata);
    void *userdata;
};

/* May close cameras from within callbacks. BATON_ENOENT: no such program. */
int camera_pool_new(struct camera_pool **ret, const struct camera_pool_config *config,
                    struct baton_error *reterr);
/* Ends every child; cameras may not be used any more. Then run the loop until it is done, then
 * free. */
void camera_pool_close(struct camera_pool *pool);
void camera_pool_free(struct camera_pool *pool); /* NULL allowed */

/* rtsp, rtsps: a stream; http, https: snapshots. BATON_EINVAL, BATON_EFULL; never for a camera that
 * is not there: that is offline. No error names the URL. */
int camera_open(struct camera **ret, struct camera_pool *pool, const char *url,
                const struct camera_options *options, const struct camera_callbacks *callbacks,
                struct baton_error *reterr);
/* No callback comes any more. Frames that are held stay valid. NULL allowed. */
void camera_close(struct camera *camera);
void camera_set_interval(struct camera *camera, int interval_ms);

/* The newest frame of snapshots that are online, for any of its subscriptions. Borrowed until the
 * next call. NULL: there is none, or it is a stream. */
const struct camera_frame *camera_newest(const struct camera *camera);
/* Shows it that frame as if it came now: a user that was opened since may have to wait for long. */
void camera_show_newest(struct camera *camera);

/* Keeps the frame until as many unrefs; for a model that runs elsewhere meanwhile. Held frames of
 * a feed above CAMERA_HELD_MAX and CAMERA_COPIED_MAX make it skip newer ones. */
const struct camera_frame *camera_frame_ref(const struct camera_frame *frame);
void camera_frame_unref(const struct camera_frame *frame); /* NULL allowed */
/* The same for a user that keeps the frame until the next one, such as the store of newest
 * pictures. At most CAMERA_KEPT_MAX frames of a feed are kept, so that others find room. False: not
 * kept. */
bool camera_frame_keep(const struct camera_frame *frame);
void camera_frame_unkeep(const struct camera_frame *frame);

struct camera_stats {
    char url[URL_MASKED_MAX];
    bool is_online;
    char codec[32], hardware[32]; /* "" until opened; hardware "": software */
    int width, height;
    double nominal_fps;                  /* 0: unknown */
    span duration;                       /* of a clip, by its header; 0: unknown */
    unsigned subscribers;                /* of the feed */
    int pid;                             /* of the child; 0: none */
    uint64_t received, decoded, dropped; /* packets in; frames; of these not shown: cap, damage */
    uint64_t shown;                      /* handed to subscribers */
    uint64_t skipped; /* announced, but replaced by a newer one, or too many are held */
    uint64_t still;   /* of this subscription: kept back because nothing moved */
    uint64_t restarts;
    char last_error[BATON_ERROR_MESSAGE_MAX]; /* "": none yet */
};

void camera_stats(const struct camera *camera, struct camera_stats *ret);

#endif

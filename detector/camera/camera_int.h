/* A feed is one source, the child that reads it, and the cameras that get its frames. Only this
 * folder includes this header.
 *
 *   camera.c   the pool and its functions
 *   feed.c     starts the child, watches it, and starts another one after a pause
 *   child.c    the parent's end of one baton-camera process, and its frames
 *
 *   child_start ─▶ feed_hear() … ─▶ feed_end(), once ─▶ child_stop
 */
#ifndef DETECTOR_CAMERA_CAMERA_INT_H
#define DETECTOR_CAMERA_CAMERA_INT_H

#include "detector/camera/camera.h"
#include "detector/camera/motion.h"
#include "detector/camera/pace.h"

struct child; /* opaque */

struct camera {
    struct feed *feed;
    struct camera *next;
    struct camera_callbacks callbacks;
    span interval;
    bool is_online; /* as it was reported */
    bool is_closed; /* freed when no loop walks the list */
    int motion_permille;
    struct motion motion;
    uint64_t still;
};

enum feed_state { FEED_STARTING, FEED_ONLINE, FEED_WAITING, FEED_OVER };

struct feed {
    struct camera_pool *pool;
    struct feed *next;
    struct camera_config config; /* holds the URL, and the number of the newest frame */
    struct camera *cameras;
    unsigned walks; /* loops over `cameras` under way */
    enum feed_state state;
    struct child *child; /* NULL: FEED_WAITING, FEED_OVER */
    uv_timer_t timer;    /* in FEED_WAITING the pause or its turn, else the watchdog */
    bool is_opened;
    unsigned looks; /* of the watchdog, since the child was started, or heard of once it is open */
    instant online_since;
    unsigned failures;          /* in a row */
    unsigned refusals;          /* of its password, since it was online last */
    bool is_accepted;           /* its password was, and was not refused since */
    instant refused_until;      /* no URL of its login is tried before; see login_pause() */
    const struct frame *newest; /* held; only of snapshots that are online, else NULL */
    struct {
        struct rate received, decoded, dropped, shown;
    } rates;
    struct camera_stats stats;
};

struct camera_pool {
    struct camera_pool_config config;
    struct feed *feeds;
    instant start_at; /* no child is started before */
};

/* Finds the feed of that URL, or adds one to the pool's list, in FEED_OVER; it is freed with its
 * last camera. Returns BATON_EINVAL for the URL, or BATON_ENOMEM. */
int feed_of(struct feed **ret, struct camera_pool *pool, const char *url,
            const struct camera_options *options, struct baton_error *reterr);
/* Starts its child, at once or in its turn. */
void feed_start(struct feed *feed);
/* Frees the cameras that were closed, and the feed with its last one. */
void feed_sweep(struct feed *feed);
/* A camera was added, was closed or has another interval. */
void feed_update_interval(struct feed *feed);

/* The child calls these. Each of its messages was checked before; one that breaks the rules ends
 * it. The message is OPENED, FRAME or PROGRESS; `missed` frames up to it are not shown. `frame`
 * (NULL: none) is its frame, borrowed during the call. */
void feed_hear(struct feed *feed, const struct camera_message *message, uint64_t missed,
               struct frame *frame);
/* The child has ended, or must end, and is stopped here; if the error's code is 0 its source was
 * read to the end. */
void feed_end(struct feed *feed, const struct baton_error *error);

/* Starts the feed's child. Returns BATON_ENOMEM, BATON_EUNAVAILABLE or BATON_EIO. */
int child_start(struct feed *feed, struct baton_error *reterr);
/* From now on the feed has no child. A living one may end its session with the camera unless
 * `is_killed`; a second later it is killed. Its memory is freed with the last held frame. */
void child_stop(struct feed *feed, bool is_killed);

void child_set_interval(struct child *child, span interval);

/* A broker (broker.h) may outlive its process: if this one is process 1 of a container, it is the
 * broker's parent then. */
void child_reap_brokers(void);

#endif

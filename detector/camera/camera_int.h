/* A feed is one source, the child that reads it, and the cameras that get its frames. Only this
 * folder includes this header.
 *
 *   camera.c   the pool and its functions
 *   feed.c     ─▶ child.h: starts the child, watches it, and starts another one after a pause
 */
#ifndef DETECTOR_CAMERA_CAMERA_INT_H
#define DETECTOR_CAMERA_CAMERA_INT_H

#include "detector/camera/camera.h"
#include "detector/camera/child.h"
#include "detector/camera/motion.h"
#include "detector/camera/pace.h"

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
    struct camera_config config; /* holds the URL */
    struct url url;
    struct camera *cameras;
    unsigned walks; /* loops over `cameras` under way */
    enum feed_state state;
    struct child *child; /* NULL: FEED_WAITING, FEED_OVER */
    uv_timer_t timer;    /* in FEED_WAITING the pause or its turn, else the watchdog */
    bool is_opened;
    unsigned looks; /* of the watchdog, since the child was started, or heard of once it is open */
    instant online_since;
    unsigned failures;                 /* in a row */
    unsigned refusals;                 /* of its password, since it was online last */
    bool is_accepted;                  /* its password was, and was not refused since */
    instant refused_until;             /* no URL of its login is tried before; see login_pause() */
    const struct camera_frame *newest; /* held; only of snapshots that are online, else NULL */
    struct camera_counts counted;      /* of this child's counts, in `stats` already */
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

/* Adds a feed to the pool's list without starting it; it is freed with its last camera. Returns
 * BATON_EINVAL for the URL, or BATON_ENOMEM. */
int feed_new(struct feed **ret, struct camera_pool *pool, const char *url,
             const struct camera_options *options, struct baton_error *reterr);
/* Starts its child, at once or in its turn. */
void feed_start(struct feed *feed);
/* Frees the cameras that were closed, and the feed with its last one. */
void feed_sweep(struct feed *feed);
/* A camera was added, was closed or has another interval. */
void feed_update_interval(struct feed *feed);

#endif

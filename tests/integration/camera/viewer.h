/* A pool of cameras on a loop of its own, and viewers that remember what they were shown. */
#ifndef TESTS_INTEGRATION_CAMERA_VIEWER_H
#define TESTS_INTEGRATION_CAMERA_VIEWER_H

#include "base/clock.h"
#include "detector/camera/camera.h"
#include "lib/patience.h"

struct gallery {
    uv_loop_t loop;
    uv_timer_t tick; /* so that conditions that are not the loop's own are looked at, too */
    int log_fd;
    struct logger *logger;
    struct camera_pool *pool;
};

enum viewer_check {
    CHECK_NOTHING,
    CHECK_SHAPE,    /* the red rectangle is there, whole */
    CHECK_SEQUENCE, /* and as many pictures were taken (rtsp_faults.py, healthy) as frames counted
                     */
    CHECK_TIME,     /* and is where it is at the frame's time */
};

struct viewer {
    struct gallery *gallery;
    struct camera *camera;
    unsigned frames, onlines, offlines;
    bool is_online, is_ended;
    int width, height;
    uint64_t number;
    int64_t pts_us;
    enum viewer_check check;
    unsigned wrong; /* frames that fail the check */
    unsigned sizes; /* how many times it was another one than before */
    unsigned holds; /* keeps so many of the first frames that it gets, at most RING_HELD_MAX */
    const struct frame *kept[RING_HELD_MAX];
    uint32_t kept_sum[RING_HELD_MAX]; /* as it was */
    unsigned kept_count;
};

/* Short pauses, so that a test need not wait; the log goes to a file that gallery_log reads. */
void gallery_init(struct gallery *gallery);
/* With another program in the place of baton-camera. */
void gallery_init_with(struct gallery *gallery, const char *program);
void gallery_fini(struct gallery *gallery); /* fails the test if anything is left on the loop */
/* Runs the loop until the condition holds; fails the test when patience runs out. */
#define AWAIT_IN(gallery, condition)                                                               \
    do {                                                                                           \
        instant until_ = instant_add(clock_now(), SPAN_S(PATIENCE_S));                             \
        while (!(condition)) {                                                                     \
            gallery_turn((gallery), until_, #condition);                                           \
        }                                                                                          \
    } while (0)
void gallery_turn(struct gallery *gallery, instant until, const char *condition);
/* What was logged so far, NUL-terminated, for free(). */
char *gallery_log(const struct gallery *gallery);
/* How often the text was logged. */
unsigned gallery_logged(const struct gallery *gallery, const char *text);

void viewer_open(struct viewer *viewer, struct gallery *gallery, const char *url,
                 const struct camera_options *options);
void viewer_close(struct viewer *viewer);
struct camera_stats viewer_stats(const struct viewer *viewer);
/* How many filters of system calls its child has, without those that the test has as well. */
int viewer_fences(const struct viewer *viewer);
pid_t viewer_broker(const struct viewer *viewer); /* of its child; 0: it has ended */

/* Checks that what it holds is unchanged, and gives back all but `count` of it; holds no more. */
void viewer_let_go(struct viewer *viewer, unsigned count);
/* Runs until `count` more frames have come. */
void viewer_run_frames(struct viewer *viewer, unsigned count);

/* The left edge of the red rectangle of tests/detector/clips.sh; -1: it is not there, or not whole.
 */
int frame_red(const struct frame *frame);

/* The clip of that name in the build folder. */
const char *clip(const char *name);

#endif

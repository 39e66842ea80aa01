/* A frame of a camera, for the users of camera.h. child.c makes them. */
#ifndef DETECTOR_CAMERA_FRAMES_H
#define DETECTOR_CAMERA_FRAMES_H

#include "base/clock.h"
#include "detector/camera/ring.h"
#include "detector/image.h"

#define CAMERA_NO_PTS INT64_MIN

struct camera_frame {
    struct frame picture; /* first; its planes are read-only, their content comes from the child */
    uint64_t
        number; /* grows with each frame of a feed, also over restarts, in steps of one or more */
    int64_t pts_us;   /* by the stream's own clock, or CAMERA_NO_PTS */
    instant captured; /* when it arrived */
    int64_t captured_unix_ms;
    enum image_source source; /* IMAGE_STREAM for clips, too */
};

/* As frame_ref() and frame_unref(). While RING_HELD_MAX frames of a feed are held, it skips newer
 * ones. */
const struct camera_frame *camera_frame_ref(const struct camera_frame *frame);
void camera_frame_unref(const struct camera_frame *frame); /* NULL allowed */

#endif

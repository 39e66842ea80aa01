/* The child's output: pictures into the ring, messages to the parent. Never waits for the parent,
 * except for a file that must lose no frame. */
#ifndef DETECTOR_CAMERA_PUBLISH_H
#define DETECTOR_CAMERA_PUBLISH_H

#include "base/buffer.h"
#include "base/clock.h"
#include "detector/camera/message.h"
#include "detector/camera/pace.h"
#include "detector/camera/rings.h"

#include <libavutil/frame.h>
#include <libswscale/swscale.h>

struct publisher {
    int socket; /* borrowed */
    const struct ring_control *control;
    struct buffer datagram;
    struct rings rings;
    uint64_t ring_known; /* the ring that the parent was sent last; 0: none */
    bool is_lossless;
    bool is_orphan; /* the parent has gone */
    uint64_t sequence;
    struct pace pace;
    instant told_at; /* the last FRAME or PROGRESS */
    struct camera_counts counts;
    struct SwsContext *scaler; /* for formats that are not 4:2:0 */
};

void publisher_init(struct publisher *publisher, int socket, const struct ring_control *control);
void publisher_fini(struct publisher *publisher);

/* Whether the parent wants no more. */
bool publisher_is_stopping(const struct publisher *publisher);

/* Sends now or not at all; false: not at all. */
bool publisher_send(struct publisher *publisher, const struct camera_message *message);
/* The last message: tried for a while. */
void publisher_fail(struct publisher *publisher, const struct baton_error *error);

/* A decoded picture, of any format that FFmpeg knows. Shows it, or counts it as dropped. An error
 * is one that no further picture will mend. */
int publisher_show(struct publisher *publisher, const AVFrame *frame, int64_t pts_us,
                   instant captured, struct baton_error *reterr);

/* Sleeps until `until`, or until the parent wants no more. */
void publisher_sleep(const struct publisher *publisher, instant until);

#endif

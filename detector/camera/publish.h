/* The output of the child: pictures go into the ring, messages to the parent. It waits for the
 * parent only for a file that must lose no frame. */
#ifndef DETECTOR_CAMERA_PUBLISH_H
#define DETECTOR_CAMERA_PUBLISH_H

#include "base/clock.h"
#include "detector/camera/message.h"
#include "detector/camera/pace.h"
#include "detector/camera/slots.h"

#include <libavutil/frame.h>
#include <libswscale/swscale.h>

struct publisher {
    int socket; /* borrowed */
    struct slots slots;
    bool is_lossless;
    bool is_stopping; /* the parent needs no more frames, or has ended */
    uint64_t sequence;
    span interval; /* the least time between two frames; 0: every frame */
    struct pace pace;
    instant told_at;    /* the last FRAME or PROGRESS */
    instant ticked_at;  /* the last publisher_tick() that did anything */
    instant trimmed_at; /* memory was given back last */
    struct camera_counts counts;
    struct SwsContext *scaler; /* for formats that are not 4:2:0 */
    int turns;                 /* quarters to the right by which each picture is turned */
};

/* Sends the message if that is possible at once; false: it was not sent. */
bool publisher_send(struct publisher *publisher, const struct camera_message *message);
/* Takes in what the parent asks for, and which frames it gives back. */
void publisher_listen(struct publisher *publisher);
/* Does so, reports that it lives, unless something was sent in the last second, and gives memory
 * back that nothing needed in the last second. Cheap: most calls do nothing. */
void publisher_tick(struct publisher *publisher, instant now);
/* Sends the last message, waiting for a while if it must. Its code is 0 without an error. */
void publisher_end(struct publisher *publisher, const struct baton_error *error);

/* Shows a decoded picture, of any format that FFmpeg knows, or counts it as dropped. Returns an
 * error if no further picture can be shown. */
int publisher_show(struct publisher *publisher, const AVFrame *frame, int64_t pts_us,
                   instant captured, struct baton_error *reterr);

/* Sleeps for `length` after `from`, or until the parent needs no more frames. `length` may be the
 * publisher's interval, which the parent may change meanwhile. */
void publisher_sleep(struct publisher *publisher, instant from, const span *length);

#endif

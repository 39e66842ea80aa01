/* The frames of one child, as its parent shows them: in the child's memory, or copied.
 *
 *   FRAME ─▶ frames_claim ─▶ fewer than CAMERA_HELD_MAX are held: it stays in the ring
 *                       └──▶ else it is copied, and its slot is free again
 *
 * So a user that holds frames for long delays neither the child nor faster users. A camera with one
 * model never has so many held frames, and none of them is copied. Only this folder includes this
 * header.
 */
#ifndef DETECTOR_CAMERA_FRAMES_INT_H
#define DETECTOR_CAMERA_FRAMES_INT_H

#include "detector/camera/frames.h"
#include "detector/camera/message.h"
#include "detector/camera/ring.h"

struct view;

/* First member of the struct that owns it, which is freed with the last reference. */
struct frames {
    unsigned refs;     /* one of the owner, and one for each ring and copy in use */
    int socket;        /* borrowed; to the child. -1: it needs no frame back */
    struct view *view; /* of the newest ring; NULL: none yet */
    unsigned held;     /* in rings */
    unsigned copied;
};

void frames_ref(struct frames *frames);
void frames_unref(struct frames *frames);

/* Makes the ring in `fd` the newest one; `fd` stays the caller's. Returns BATON_EPROTO or
 * BATON_ENOMEM. */
int frames_adopt(struct frames *frames, int fd, const struct camera_message *message,
                 struct baton_error *reterr);
/* Drops the newest ring; held frames of older ones stay. */
void frames_forget(struct frames *frames);
int frames_slots(const struct frames *frames); /* of the newest ring; 0: there is none */

/* Returns the frame of the newest ring, held once, or NULL if too many are held. */
struct camera_frame *frames_claim(struct frames *frames, const struct camera_message *message);
/* Gives back a frame of the newest ring that is not to be claimed. */
void frames_leave(const struct frames *frames, const struct camera_message *message);

#endif

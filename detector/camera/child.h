/* The parent's end of one baton-camera process: its start, its messages, its end.
 *
 *   child_start ─▶ word(), frame(), in any order ─▶ ended(), once ─▶ child_stop
 *
 * Every message of the child is checked before a hook is called; a message or a ring that breaks
 * the rules ends the child. Inside this folder only.
 */
#ifndef DETECTOR_CAMERA_CHILD_H
#define DETECTOR_CAMERA_CHILD_H

#include "detector/camera/frames.h"
#include "detector/camera/message.h"

#include <uv.h>

struct child; /* opaque */

struct child_hooks {
    /* OPENED, FRAME, PROGRESS: its messages. `skipped`: how many FRAMEs this one replaced. */
    void (*word)(void *userdata, const struct camera_message *message, unsigned skipped);
    /* Borrowed during the call. Its number is the child's own. */
    void (*frame)(void *userdata, struct camera_frame *frame);
    /* It has gone, or must go. `error` NULL: it came to its end. child_stop must follow, and may
     * come from within. */
    void (*ended)(void *userdata, const struct baton_error *error);
    void *userdata;
};

/* All borrowed during the call. BATON_EIO, BATON_ENOMEM. */
int child_start(struct child **ret, uv_loop_t *loop, const char *program,
                const struct camera_config *config, const struct child_hooks *hooks,
                struct baton_error *reterr);
/* No hook is called any more. A living child may end its session with the camera if `is_killed` is
 * false; a second later it is killed. Its memory is freed with the last held frame. */
void child_stop(struct child *child, bool is_killed);

void child_set_interval(struct child *child, span interval);
int child_pid(const struct child *child);
bool child_is_held(const struct child *child); /* a frame of it is held */

#endif

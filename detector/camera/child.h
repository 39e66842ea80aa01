/* The parent's end of one baton-camera process, and its frames.
 *
 *   child_start ─▶ word(), frame(), in any order ─▶ ended(), once ─▶ child_stop
 *
 * Every message of the child is checked before a hook is called; one that breaks the rules ends the
 * child. Only this folder includes this header.
 */
#ifndef DETECTOR_CAMERA_CHILD_H
#define DETECTOR_CAMERA_CHILD_H

#include "detector/camera/frames.h"
#include "detector/camera/message.h"

#include <uv.h>

struct child; /* opaque */

struct child_hooks {
    /* The message is OPENED, FRAME or PROGRESS; `missed` frames before it are not shown. */
    void (*word)(void *userdata, const struct camera_message *message, uint64_t missed);
    /* The frame is borrowed during the call. */
    void (*frame)(void *userdata, struct camera_frame *frame);
    /* The child has ended, or must end; without `error` its source was read to the end. The hook
     * calls child_stop. */
    void (*ended)(void *userdata, const struct baton_error *error);
    void *userdata;
};

/* All arguments are borrowed during the call. Returns BATON_ENOMEM,
 * BATON_EUNAVAILABLE or BATON_EIO. */
int child_start(struct child **ret, uv_loop_t *loop, const char *program,
                const struct camera_config *config, const struct child_hooks *hooks,
                struct baton_error *reterr);
/* Ends the hooks. A living child may end its session with the camera unless `is_killed`; a second
 * later it is killed. Its memory is freed with the last held frame. */
void child_stop(struct child *child, bool is_killed);

void child_set_interval(struct child *child, span interval);
int child_pid(const struct child *child);

#endif

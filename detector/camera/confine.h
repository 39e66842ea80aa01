/* Takes from a helper's process what it does not need, in two steps. Each step is final.
 *
 *   confine_process    at once: no other program, no new process, no privilege, nothing written;
 *                      reads only what names, certificates and drivers need; dials only one port
 *   confine_stream     once the camera is connected: no further connection, no file, no thread
 *
 * The kernel enforces this by the user, limits, Landlock (as far as the kernel has it) and seccomp,
 * set in this order. Without one of the first three the others still hold; seccomp is required.
 */
#ifndef DETECTOR_CAMERA_CONFINE_H
#define DETECTOR_CAMERA_CONFINE_H

#include "base/error.h"
#include "detector/camera/landlock.h"

/* Both return BATON_EUNAVAILABLE if the kernel refuses the filter; then the camera must not be
 * opened. */
int confine_process(const struct confinement *confinement, struct baton_error *reterr);
int confine_stream(const struct confinement *confinement, struct baton_error *reterr);

#endif

/* What a camera's child may do, given away in two steps. Each step is final.
 *
 *   confine_process    at once: no other program, no new process, no privilege, nothing written;
 *                      reads only what names, certificates and drivers need; dials only one port
 *   confine_stream     once the camera is connected: no further connection, no file, no thread
 *
 * The kernel's own fences come first to last: user, limits, Landlock (what the kernel knows of it),
 * seccomp. Where one is missing, the others hold; seccomp is required.
 */
#ifndef DETECTOR_CAMERA_CONFINE_H
#define DETECTOR_CAMERA_CONFINE_H

#include "base/error.h"
#include "detector/camera/confinement.h"

/* BATON_EUNAVAILABLE: the kernel refused the filter; then the camera must not be opened. */
int confine_process(const struct confinement *confinement, struct baton_error *reterr);
int confine_stream(const struct confinement *confinement, struct baton_error *reterr);

#endif

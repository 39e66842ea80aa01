/* Landlock: what files can be reached, and which port can be dialled. */
#ifndef DETECTOR_CAMERA_LANDLOCK_H
#define DETECTOR_CAMERA_LANDLOCK_H

#include "detector/camera/confinement.h"

/* As much of it as the kernel knows: from 5.13 files, from 6.7 TCP ports, from 6.12 signals and
 * abstract sockets. Needs no_new_privs. */
void landlock_restrict(const struct confinement *confinement);

#endif

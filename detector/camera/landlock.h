/* Landlock limits which files can be read, and which port can be dialled. */
#ifndef DETECTOR_CAMERA_LANDLOCK_H
#define DETECTOR_CAMERA_LANDLOCK_H

#include "detector/camera/confinement.h"

/* Applies as much as the kernel has: files from 5.13, TCP ports from 6.7, signals and abstract
 * sockets from 6.12. no_new_privs must be set. */
void landlock_restrict(const struct confinement *confinement);

#endif

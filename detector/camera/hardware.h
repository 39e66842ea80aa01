/* The hardware decoders, by FFmpeg's names. */
#ifndef CAMERA_HARDWARE_H
#define CAMERA_HARDWARE_H

#include <stdbool.h>

enum { CAMERA_HARDWARE_MAX = 256 };

/* True if this FFmpeg knows the name; only opening a stream shows whether the machine has the
 * device. `ret_known` lists the known names, separated by commas. */
bool camera_hardware_is_known(const char *name, char ret_known[static CAMERA_HARDWARE_MAX]);

#endif

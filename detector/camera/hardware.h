/* Decoders of the machine, by the names that FFmpeg has for them. */
#ifndef CAMERA_HARDWARE_H
#define CAMERA_HARDWARE_H

#include <stdbool.h>

enum { CAMERA_HARDWARE_MAX = 256 };

/* Whether this FFmpeg knows the name; only opening a stream shows whether the machine has it.
 * `ret_known`: the known names, separated by commas. */
bool camera_hardware_is_known(const char *name, char ret_known[static CAMERA_HARDWARE_MAX]);

#endif

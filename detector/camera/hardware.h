/* Decoders of the machine, by the names that FFmpeg has for them. */
#ifndef CAMERA_HARDWARE_H
#define CAMERA_HARDWARE_H

#include <stdbool.h>

enum { CAMERA_HARDWARE_MAX = 256 };

/* Whether this FFmpeg knows the name; that the machine has one, only opening a stream can tell.
 * `ret_known`: those that it knows, a comma between two. */
bool camera_hardware_is_known(const char *name, char ret_known[static CAMERA_HARDWARE_MAX]);

#endif

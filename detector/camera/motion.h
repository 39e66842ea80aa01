/* Detects motion by the luma on a coarse grid, at little cost. Pure.
 *
 * Each cell of the grid is the mean of a few samples. A cell has moved if it differs by more than
 * MOTION_THRESHOLD from a running mean of its past, so dusk is no motion, and a car that has parked
 * stops being one.
 */
#ifndef DETECTOR_CAMERA_MOTION_H
#define DETECTOR_CAMERA_MOTION_H

#include "detector/image.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    MOTION_COLUMNS = 64,
    MOTION_ROWS = 36,
    MOTION_THRESHOLD = 12, /* of 255; noise stays below, because a cell is a mean */
};

struct motion {
    int width, height; /* of the last frame; the first one, and one of another size, have moved */
    uint16_t background[MOTION_ROWS * MOTION_COLUMNS]; /* luma times 256 */
};

/* Returns the share of the picture that moved, in permille, and adds the frame to the background.
 */
int motion_measure(struct motion *motion, const struct frame *frame);

#endif

/* Whether anything moved: a cheap look at the luma, on a coarse grid. Pure.
 *
 * Each cell of the grid is the mean of a few samples; a cell has moved if it differs from what it
 * was for long by more than MOTION_THRESHOLD. "For long" is a running mean, so that dusk is no
 * motion and a parked car stops being one.
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
    bool is_known; /* false to begin: the first frame has nothing to differ from, and has moved */
    int width, height;
    uint16_t background[MOTION_ROWS * MOTION_COLUMNS]; /* luma times 256 */
};

/* The share of the picture that moved, in permille; takes the frame into the background. */
int motion_measure(struct motion *motion, const struct frame *frame);

#endif

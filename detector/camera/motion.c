#include "detector/camera/motion.h"

#include <stdlib.h>

enum {
    SAMPLES = 4,   /* along each side of a cell */
    SLOWNESS = 16, /* a frame counts as one part in this many */
    FIXED = 256,
    PERMILLE = 1000,
};

/* Returns luma times FIXED, as the mean of SAMPLES² places spread over the cell. */
static int cell_mean(const struct frame *frame, int column, int row)
{
    int sum = 0;

    for (int i = 0; i < SAMPLES; i++) {
        int y =
            (int)(((int64_t)row * SAMPLES + i) * frame->height / ((int64_t)MOTION_ROWS * SAMPLES));
        const uint8_t *line = frame->plane[0] + (ptrdiff_t)frame->stride[0] * y;
        for (int j = 0; j < SAMPLES; j++) {
            sum += line[((int64_t)column * SAMPLES + j) * frame->width /
                        ((int64_t)MOTION_COLUMNS * SAMPLES)];
        }
    }
    return sum * FIXED / (SAMPLES * SAMPLES);
}

int motion_measure(struct motion *motion, const struct frame *frame)
{
    bool is_first = motion->width != frame->width || motion->height != frame->height;
    int moved = 0;

    for (int row = 0; row < MOTION_ROWS; row++) {
        for (int column = 0; column < MOTION_COLUMNS; column++) {
            uint16_t *background = &motion->background[row * MOTION_COLUMNS + column];
            int now = cell_mean(frame, column, row);
            int change = is_first ? 0 : now - *background;
            moved += abs(change) > MOTION_THRESHOLD * FIXED;
            *background = (uint16_t)(is_first ? now : *background + change / SLOWNESS);
        }
    }
    motion->width = frame->width;
    motion->height = frame->height;
    return is_first ? PERMILLE : moved * PERMILLE / (MOTION_ROWS * MOTION_COLUMNS);
}

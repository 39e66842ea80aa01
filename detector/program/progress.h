/* The progress of a try: a bar on a terminal, a line for each tenth of the clip elsewhere. */
#ifndef DETECTOR_PROGRAM_PROGRESS_H
#define DETECTOR_PROGRAM_PROGRESS_H

#include "base/clock.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct progress_state {
    uint64_t frames, detections;
    span position, duration; /* of the clip; duration 0: unknown */
    span spent;              /* since it began */
};

struct progress {
    FILE *file;
    bool is_terminal;
    bool is_drawn;
    int printed; /* tenths of the clip that were printed, or PROGRESS_FRAMES of a clip of unknown
                 length */
};

enum { PROGRESS_FRAMES = 1000, PROGRESS_LINE_MAX = 80 };

struct progress progress_of(FILE *file);

/* Called after each frame. Prints nothing on a terminal, else a line when the next tenth is
 * reached. */
void progress_step(struct progress *progress, const struct progress_state *state);
/* Called now and then. Draws the bar on a terminal, else nothing. */
void progress_draw(struct progress *progress, const struct progress_state *state);
/* Removes the bar, so that other text can be printed. */
void progress_hide(struct progress *progress);

/* Writes the bar, in at most `columns` letters. Pure. */
void progress_bar(char ret[PROGRESS_LINE_MAX], int columns, const struct progress_state *state);

#endif

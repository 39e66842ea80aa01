/* How far a try has come: a bar on a terminal, a line for each tenth of the clip elsewhere. */
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
    int told; /* tenths of the clip, or PROGRESS_FRAMES of a clip of unknown length */
};

enum { PROGRESS_FRAMES = 1000, PROGRESS_LINE_MAX = 80 };

struct progress progress_of(FILE *file);

/* After each frame: on a terminal nothing; else a line, if the next tenth was reached. */
void progress_step(struct progress *progress, const struct progress_state *state);
/* Now and then: on a terminal the bar, else nothing. */
void progress_draw(struct progress *progress, const struct progress_state *state);
/* Takes the bar away, so that something else may be written. */
void progress_hide(struct progress *progress);

/* What the bar is, in at most `columns` letters. Pure. */
void progress_bar(char ret[PROGRESS_LINE_MAX], int columns, const struct progress_state *state);

#endif

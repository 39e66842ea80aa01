/* How fast a counter grows. Pure. */
#ifndef DETECTOR_CAMERA_RATE_H
#define DETECTOR_CAMERA_RATE_H

#include "base/clock.h"

#include <stdbool.h>
#include <stdint.h>

enum { RATE_WINDOW_S = 5 };

/* {0} is its first value. */
struct rate {
    instant begin;  /* of the window */
    uint64_t first; /* the counter's value then */
    bool is_whole;  /* a window has passed */
    double last;    /* a second, over the last window, or over the part of the first one so far */
};

/* Takes the counter's value. Returns `last`. */
double rate_count(struct rate *rate, uint64_t count, instant now);

#endif

/* Decides when a frame is shown at a capped rate, and when a camera is reopened; measures how fast
 * a counter grows. Pure. */
#ifndef DETECTOR_CAMERA_PACE_H
#define DETECTOR_CAMERA_PACE_H

#include "base/backoff.h"

#include <stdbool.h>
#include <stdint.h>

struct pace {
    instant due; /* zero at first: the next frame is due at once */
};

/* True if a frame that came `at` shall be shown, at most one in each `interval`; then it counts.
 * The mean rate is met although frames have a rhythm of their own: a cap of 10 shows 10 of 15 a
 * second, and not every second one. */
bool pace_is_due(struct pace *pace, instant at, span interval);

/* Returns the failures in a row with this one. `online` is how long the camera was online before it
 * (0: not at all); after a steady while the count begins anew. A camera that restarts again and
 * again is online in between, if only briefly: its count stays low, and so does its next pause. */
unsigned failures_after(unsigned failures, span online);

/* Returns the pause after `refusals` (1 or more) of a password in a row: `max` once, since a camera
 * may refuse while it starts, then thirty times as long, since some lock a user out after five. */
span refusal_pause_after(unsigned refusals, span max, uint32_t random);

/* Returns when the next process may start, after one whose start took from `began` to `ended`: half
 * of the time is left for other work. */
instant start_after(instant began, instant ended);

/* {0} is its first value. Its window has 5 s. */
struct rate {
    instant begin;  /* of the window */
    uint64_t first; /* the counter's value then */
    bool is_whole;  /* a window has passed */
    double last;    /* a second, over the last window, or over the part of the first one so far */
};

/* Takes the counter's value. Returns `last`. */
double rate_count(struct rate *rate, uint64_t count, instant now);

#endif

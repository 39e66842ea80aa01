/* When: frames at a capped rate, and reopening with growing, spread pauses. Pure. */
#ifndef DETECTOR_CAMERA_PACE_H
#define DETECTOR_CAMERA_PACE_H

#include "base/clock.h"

#include <stdbool.h>
#include <stdint.h>

struct pace {
    instant due; /* zero to begin: at once */
};

/* Whether a frame that came `at` shall be shown, no more often than every `interval`; if so, it
 * counts. Over time the rate is met although frames come at a rhythm of their own: of 15 a second,
 * a cap of 10 shows 10 and not every second one. */
bool pace_is_due(struct pace *pace, instant at, span interval);

/* The pause before the next try after `failures` (1 or more) in a row: doubling from min to max,
 * then spread over its upper half by `random`, so that a hundred cameras of one switch do not all
 * come back in the same moment. */
span backoff_after(unsigned failures, span min, span max, uint32_t random);

/* The failures in a row with this one, before which it was online for so long (0: it was not):
 * after a steady while the count begins anew. */
unsigned failures_after(unsigned failures, span online);

/* When the next process may start, after one whose start took from `began` to `ended`: half of the
 * time is for other work. */
instant start_after(instant began, instant ended);

#endif

/* Growth of a camera's counters, in frames a second, for /status.
 *
 * Counters are read every RATES_LOOK_MS; a rate is the growth over the last whole window of
 * RATES_WINDOW_S, or over the part of the first window so far.
 */
#ifndef DETECTOR_PROGRAM_RATES_H
#define DETECTOR_PROGRAM_RATES_H

#include "base/clock.h"
#include "detector/camera/camera.h"

enum { RATES_LOOK_MS = 1000, RATES_WINDOW_S = 5 };

struct rates; /* of one camera, in a table; NULL is the empty table */

/* Reads all cameras: each is counted, then those that were not are forgotten. A counter that went
 * back, as after another camera took the name, begins anew. */
void rates_count(struct rates **rates, const char *identifier, const struct camera_stats *stats,
                 instant now);
void rates_sweep(struct rates **rates);

enum rate { RATE_RECEIVED, RATE_DECODED, RATE_DROPPED, RATE_SHOWN, RATE_COUNT };

/* Zeroes for an unknown camera. */
void rates_of(const struct rates *rates, const char *identifier, double ret[RATE_COUNT]);

#endif

/* Growth of a camera's counters, in frames a second, for /status.
 *
 * Counters are read every RATES_LOOK_MS; a rate is the growth over the last whole window of
 * RATES_WINDOW_S, or over the part of the first window so far.
 */
#ifndef DETECTOR_PROGRAM_RATES_H
#define DETECTOR_PROGRAM_RATES_H

#include "base/clock.h"
#include "detector/camera/camera.h"

enum { RATES_LOOK_MS = 1000, RATES_WINDOW_S = 5, RATES_COUNTED = 4 };

struct rates; /* opaque */

struct rates *rates_new(void); /* NULL: out of memory */
void rates_free(struct rates *rates);

/* Reads all cameras: each is counted, then those that were not are forgotten. A counter that went
 * back, as after another camera took the name, begins anew. */
void rates_count(struct rates *rates, const char *identifier, const struct camera_stats *stats,
                 instant now);
void rates_sweep(struct rates *rates);

struct rate_figures {
    double received, decoded, dropped, shown;
};

/* Returns zeroes for an unknown camera. */
struct rate_figures rates_of(const struct rates *rates, const char *identifier);

#endif

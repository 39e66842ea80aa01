/* How fast a camera's figures grow, in frames a second, for /status.
 *
 * Counters are looked at every RATES_LOOK_MS; what is told is the growth over the last whole window
 * of RATES_WINDOW_S, or over what there is of the first one.
 */
#ifndef DETECTOR_PROGRAM_RATES_H
#define DETECTOR_PROGRAM_RATES_H

#include "base/clock.h"
#include "detector/camera/camera.h"

enum { RATES_LOOK_MS = 1000, RATES_WINDOW_S = 5, RATES_COUNTED = 4 };

struct rates; /* opaque */

struct rates *rates_new(void); /* NULL: out of memory */
void rates_free(struct rates *rates);

/* One look at all cameras: each is counted, then those that were not are forgotten. A counter that
 * went back, as after another camera took the name, begins anew. */
void rates_count(struct rates *rates, const char *identifier, const struct camera_stats *stats,
                 instant now);
void rates_sweep(struct rates *rates);

struct rate_figures {
    double received, decoded, dropped, shown;
};

/* Zeroes for a camera that is not known. */
struct rate_figures rates_of(const struct rates *rates, const char *identifier);

#endif

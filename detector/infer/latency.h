/* Measures durations, as percentiles. Pure.
 *
 * There is a count for each eighth of a doubling, from 1 µs to about an hour, so a percentile is at
 * most 9 % too high. Old counts fade: at LATENCY_COUNTS_MAX all are halved.
 */
#ifndef DETECTOR_INFER_LATENCY_H
#define DETECTOR_INFER_LATENCY_H

#include "base/clock.h"

enum { LATENCY_BUCKETS = 256, LATENCY_STEPS = 8, LATENCY_COUNTS_MAX = 8192 };

struct latency {
    uint32_t counts[LATENCY_BUCKETS];
    uint32_t total;
};

void latency_add(struct latency *latency, span duration);

/* Returns the duration that `percent` (0 to 100) of them did not exceed, in ms; 0 without any. */
double latency_ms(const struct latency *latency, double percent);

#endif

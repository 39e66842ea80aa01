/* What the API counts of itself, for /metrics. Pure. */
#ifndef FLEET_HTTP_COUNTS_H
#define FLEET_HTTP_COUNTS_H

#include "base/clock.h"

enum { COUNTS_LATENCIES = 7, COUNTS_CLASSES = 6 };

struct counts {
    uint64_t by_class[COUNTS_CLASSES]; /* answers of 2xx at 2 */
    uint64_t too_many;                 /* of an address: 429 */
    uint64_t events, followers_cut;    /* followers that read too slowly */
    uint64_t images, images_cached;    /* that a worker sent; that were sent again */
    uint64_t latencies[COUNTS_LATENCIES + 1];
    double latency_sum_s;
};

extern const double counts_bounds_s[COUNTS_LATENCIES]; /* of the histogram */

/* An answer of this status. */
void counts_answer(struct counts *counts, unsigned status);
/* A request took so long. */
void counts_time(struct counts *counts, span time);

#endif

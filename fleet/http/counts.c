#include "fleet/http/counts.h"

#include <stddef.h>

enum { PER_CLASS = 100 };

const double counts_bounds_s[COUNTS_LATENCIES] = {0.001, 0.005, 0.025, 0.1, 0.5, 2, 10};

void counts_answer(struct counts *counts, unsigned status)
{
    counts->by_class[status / PER_CLASS % COUNTS_CLASSES]++;
}

void counts_time(struct counts *counts, span time)
{
    double seconds = (double)time.ns / 1e9;
    size_t at = 0;

    while (at < COUNTS_LATENCIES && seconds > counts_bounds_s[at]) {
        at++;
    }
    counts->latencies[at]++;
    counts->latency_sum_s += seconds;
}

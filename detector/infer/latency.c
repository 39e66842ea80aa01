#include "detector/infer/latency.h"

#include <math.h>

static int bucket_of(span duration)
{
    double us = (double)duration.ns / 1000;
    int bucket = us > 1 ? (int)ceil(log2(us) * LATENCY_STEPS) : 0;

    return bucket < LATENCY_BUCKETS ? bucket : LATENCY_BUCKETS - 1;
}

void latency_add(struct latency *latency, span duration)
{
    if (latency->total >= LATENCY_COUNTS_MAX) {
        latency->total = 0;
        for (int i = 0; i < LATENCY_BUCKETS; i++) {
            latency->counts[i] /= 2;
            latency->total += latency->counts[i];
        }
    }
    latency->counts[bucket_of(duration)]++;
    latency->total++;
}

double latency_ms(const struct latency *latency, double percent)
{
    double wanted = ceil((double)latency->total * percent / 100);
    double passed = 0;

    for (int i = 0; i < LATENCY_BUCKETS && latency->total > 0; i++) {
        passed += latency->counts[i];
        if (passed >= wanted && passed > 0) {
            return exp2((double)i / LATENCY_STEPS) / 1000;
        }
    }
    return 0;
}

#include "detector/camera/rate.h"

double rate_count(struct rate *rate, uint64_t count, instant now)
{
    bool begins = rate->begin.ns == 0;
    double seconds = (double)instant_since(now, rate->begin).ns / 1e9;

    if (begins) {
        rate->begin = now;
        rate->first = count;
    } else if (seconds > 0 && (!rate->is_whole || seconds >= RATE_WINDOW_S)) {
        rate->last = (double)(count - rate->first) / seconds;
    }
    if (!begins && seconds >= RATE_WINDOW_S) {
        rate->is_whole = true;
        rate->begin = now;
        rate->first = count;
    }
    return rate->last;
}

#include "base/backoff.h"

span backoff_after(unsigned failures, span min, span max, uint32_t random)
{
    span pause = min;

    for (unsigned i = 1; i < failures && pause.ns < max.ns; i++) {
        pause.ns = pause.ns > max.ns / 2 ? max.ns : pause.ns * 2;
    }
    pause.ns = pause.ns > max.ns ? max.ns : pause.ns;
    return (span){pause.ns - (int64_t)((double)pause.ns / 2 * (random / 4294967296.0))};
}

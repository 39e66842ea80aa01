#include "sim/drift.h"

enum { PPM = 1000000 };

instant drift_local(const struct drift_clock *clock, int64_t at)
{
    int64_t passed = at - clock->true_base;
    __int128 scaled = (__int128)passed * (PPM + clock->ppm) / PPM;
    return (instant){clock->local_base + (int64_t)scaled};
}

int64_t drift_true(const struct drift_clock *clock, instant local)
{
    __int128 passed;
    int64_t at;

    if (local.ns == INT64_MAX) {
        return INT64_MAX;
    }
    if (local.ns <= clock->local_base) {
        return clock->true_base;
    }
    passed = (__int128)(local.ns - clock->local_base) * PPM / (PPM + clock->ppm);
    if (passed > INT64_MAX / 2) {
        return INT64_MAX;
    }
    at = clock->true_base + (int64_t)passed;
    while (drift_local(clock, at).ns < local.ns) {
        at++;
    }
    return at;
}

void drift_set_rate(struct drift_clock *clock, int64_t at, int64_t ppm)
{
    clock->local_base = drift_local(clock, at).ns;
    clock->true_base = at;
    clock->ppm = ppm;
}

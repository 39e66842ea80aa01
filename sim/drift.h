/* A clock that never jumps and runs fast or slow: local = local_base + (true - true_base) * rate.
 */
#ifndef SIM_DRIFT_H
#define SIM_DRIFT_H

#include "base/clock.h"

struct drift_clock {
    int64_t true_base, local_base, ppm;
};

instant drift_local(const struct drift_clock *clock, int64_t at);
/* The first true instant at which the clock shows `local`; INT64_MAX for never. */
int64_t drift_true(const struct drift_clock *clock, instant local);
/* From the true instant `at` on. */
void drift_set_rate(struct drift_clock *clock, int64_t at, int64_t ppm);

#endif

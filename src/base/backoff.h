/* How long a try that failed waits for the next one. Pure. */
#ifndef BASE_BACKOFF_H
#define BASE_BACKOFF_H

#include "base/clock.h"

/* Returns the pause after `failures` (1 or more) in a row. It doubles from min to max, and `random`
 * spreads it over its upper half, so that what failed together does not come back together. */
span backoff_after(unsigned failures, span min, span max, uint32_t random);

#endif

/* How long a delivery waits before it is tried again. Pure. */
#ifndef FLEET_OUTLETS_BACKOFF_H
#define FLEET_OUTLETS_BACKOFF_H

#include "base/clock.h"

enum { BACKOFF_RETRIES_MAX = 10, BACKOFF_FIRST_S = 2, BACKOFF_MOST_S = 60 };

/* After `failures` (from 1 on) in a row: 2 s, 4 s, 8 s … at most 60 s, less up to a half by
 * `random`, so that processes which failed together do not come back together. At least 1 s. */
span backoff_after(unsigned failures, uint32_t random);

#endif

#include "fleet/outlets/backoff.h"

#define MOST_MS ((int64_t)BACKOFF_MOST_S * 1000)

span backoff_after(unsigned failures, uint32_t random)
{
    int64_t whole_ms = (int64_t)BACKOFF_FIRST_S * 1000;

    for (unsigned i = 1; i < failures && whole_ms < MOST_MS; i++) {
        whole_ms *= 2;
    }
    if (whole_ms > MOST_MS) {
        whole_ms = MOST_MS;
    }
    return SPAN_MS(whole_ms - whole_ms / 2 * random / UINT32_MAX);
}

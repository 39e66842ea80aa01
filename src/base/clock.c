#include "base/clock.h"

#include <time.h>

instant clock_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now); /* cannot fail on a kernel that has the clock */
    return (instant){(int64_t)now.tv_sec * 1000000000 + now.tv_nsec};
}

/* The one clock of Baton: CLOCK_BOOTTIME, which never jumps and counts the time asleep.
 *
 * A point in time and a length of time are different types, so that the compiler refuses to mix
 * them. Only the edges (providers, programs) call clock_now(); the cores are handed an instant.
 * All arithmetic saturates: "never" plus a second is still never.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int64_t ns;
} instant; /* nanoseconds since boot */

typedef struct {
    int64_t ns;
} span; /* nanoseconds, may be negative */

#define INSTANT_NEVER   ((instant){INT64_MAX}) /* later than every other */
#define INSTANT_PAST    ((instant){INT64_MIN}) /* before every other */
#define SPAN_NS(number) ((span){(int64_t)(number)})
#define SPAN_US(number) ((span){(int64_t)(number)*1000})
#define SPAN_MS(number) ((span){(int64_t)(number)*1000000})
#define SPAN_S(number)  ((span){(int64_t)(number)*1000000000})

/* Now, by the calling thread's own reading. Never fails. Async-signal-safe. */
instant clock_now(void);

static inline instant instant_add(instant at, span by)
{
    int64_t sum;
    if (at.ns == INT64_MAX || at.ns == INT64_MIN) {
        return at;
    }
    if (__builtin_add_overflow(at.ns, by.ns, &sum)) {
        sum = by.ns > 0 ? INT64_MAX : INT64_MIN;
    }
    return (instant){sum};
}

/* later - earlier; saturates. */
static inline span instant_since(instant later, instant earlier)
{
    int64_t difference;
    if (__builtin_sub_overflow(later.ns, earlier.ns, &difference)) {
        difference = later.ns > earlier.ns ? INT64_MAX : INT64_MIN;
    }
    return (span){difference};
}

static inline bool instant_before(instant a, instant b)
{
    return a.ns < b.ns;
}

static inline instant instant_min(instant a, instant b)
{
    return a.ns < b.ns ? a : b;
}

static inline instant instant_max(instant a, instant b)
{
    return a.ns > b.ns ? a : b;
}

#endif

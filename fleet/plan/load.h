/* The load of a worker that its subscriptions do not cause, estimated from its reports. Pure.
 *
 * A worker with half of its room taken is expected to report half of the load; what it reports
 * above that is caused by something else, or its subscriptions are heavier than its room allows
 * for. Both are reasons to give it less:
 *
 *   load       = the greatest of CPU and GPU, and of both memories as far as they are scarce: above
 *                LOAD_MEMORY_PERMILLE they count as they are, below not at all
 *   its share  = subscriptions / room
 *   other      = load - its share, at least 0; an average over about LOAD_AVERAGED reports
 *
 * After a change of its list a worker is not settled: for LOAD_SKIPPED its reports count for
 * nothing, since models are loaded and cameras opened, and only after LOAD_SETTLED are they
 * believed.
 */
#ifndef FLEET_PLAN_LOAD_H
#define FLEET_PLAN_LOAD_H

#include "base/clock.h"

#include <stddef.h>

enum { LOAD_MEMORY_PERMILLE = 900, LOAD_AVERAGED = 8 };

#define LOAD_SKIPPED  SPAN_S(5)
#define LOAD_SETTLED  SPAN_S(30)
#define LOAD_INTERVAL SPAN_MS(900) /* reports that come faster are left out */

/* Of one worker. Zeroed before its first use. */
struct load {
    uint32_t other_permille;
    bool is_known; /* there was a report */
    size_t count;  /* of its subscriptions … */
    instant since; /* … and how long they are so many */
    instant heard; /* when a report counted last */
};

/* Percentages of a report. */
struct load_report {
    double cpu, gpu, gpu_memory, memory;
};

/* A report came from a worker that has `count` subscriptions and room for `room`. */
void load_hear(struct load *load, const struct load_report *report, size_t count, size_t room,
               instant now);
bool load_is_settled(const struct load *load, size_t count, instant now);

#endif

/* Which process is to own each worker (the first), and which one takes over from it (the second).
 * Pure.
 *
 *   first    each process has as many workers as any other, give or take one
 *   second   the workers of each first have their seconds among all other processes, evenly again:
 * when a process dies, all others take over some of its workers
 *
 * With the fewest changes: a process keeps as many of its workers as its even share allows, those
 * that it owns before others. A worker without a first gets its owner, or its second, if these have
 * room. The same problem has the same answer, and the answer to an answer is the same.
 */
#ifndef FLEET_PLAN_SPREAD_H
#define FLEET_PLAN_SPREAD_H

#include <stddef.h>
#include <stdint.h>

enum { SPREAD_NONE = -1 };

/* Processes and workers are numbers; the caller keeps both in an order that does not change. */
struct spread_problem {
    size_t process_count; /* that live */
    size_t worker_count;
    const int32_t *first, *second; /* today's, of each worker; SPREAD_NONE: none that lives */
    const int32_t *owner;          /* who holds it at this moment; SPREAD_NONE */
};

/* Both arrays have worker_count numbers, and are none of the problem. Without a process all are
 * SPREAD_NONE, and with one all seconds are. BATON_ENOMEM: they are unchanged. */
int spread_solve(const struct spread_problem *problem, int32_t *ret_first, int32_t *ret_second);

#endif

/* A heap of units: the next one is found in the logarithm of their number. */
#include "work/placement_int.h"

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Below 0: x comes first. */
static int hardest_first(const struct solver *solver, const struct unit *x, const struct unit *y)
{
    int order = solver->problem->strategy == PLACEMENT_PRIORITY
                    ? (x->priority < y->priority) - (x->priority > y->priority)
                    : 0;

    order =
        order != 0 ? order : compare(solver->needs[x->needs].bins, solver->needs[y->needs].bins);
    order = order != 0 ? order : compare(y->amount.of[GPUS], x->amount.of[GPUS]);
    order = order != 0 ? order : compare(y->amount.of[WEIGHT], x->amount.of[WEIGHT]);
    return order != 0 ? order : compare(y->amount.of[MEMORY], x->amount.of[MEMORY]);
}

static bool is_before(const struct solver *solver, const struct unit_queue *queue, uint32_t a,
                      uint32_t b)
{
    const struct unit *x = &solver->units[a], *y = &solver->units[b];
    int order = 0;

    switch (queue->order) {
    case HARDEST_FIRST:
        order = hardest_first(solver, x, y);
        break;
    case LARGEST_FIRST:
        order = compare(y->amount.of[queue->dimension], x->amount.of[queue->dimension]);
        break;
    case LEAST_IMPORTANT_FIRST:
        order = (x->priority > y->priority) - (x->priority < y->priority);
        order = order != 0 ? order : compare(y->amount.of[WEIGHT], x->amount.of[WEIGHT]);
        break;
    }
    return order < 0 || (order == 0 && a < b);
}

void unit_queue_push(const struct solver *solver, struct unit_queue *queue, const struct unit *unit)
{
    uint32_t number = (uint32_t)(unit - solver->units);
    uint32_t *units = queue->units;
    uint32_t at = queue->count++;

    for (; at > 0 && is_before(solver, queue, number, units[(at - 1) / 2]); at = (at - 1) / 2) {
        units[at] = units[(at - 1) / 2];
    }
    units[at] = number;
}

struct unit *unit_queue_pop(const struct solver *solver, struct unit_queue *queue)
{
    uint32_t *units = queue->units;
    uint32_t at = 0;

    if (queue->count == 0) {
        return NULL;
    }
    uint32_t first = units[0];
    uint32_t last = units[--queue->count];
    for (uint32_t below; (below = 2 * at + 1) < queue->count; at = below) {
        below +=
            below + 1 < queue->count && is_before(solver, queue, units[below + 1], units[below]);
        if (is_before(solver, queue, last, units[below])) {
            break;
        }
        units[at] = units[below];
    }
    units[at] = last;
    return &solver->units[first];
}

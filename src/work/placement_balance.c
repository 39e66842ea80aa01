/* Moves units that have bins: out of draining nodes, out of overfilled ones, and for balance. */
#include "work/placement_int.h"
#include "work/placement_mutants.h"

enum {
    COMPARED_MAX = 32, /* units of a bin, for one move */
    TIMES_MAX = 8,     /* that all bins are gone through */
};

#define NO_DONOR UINT32_MAX

static uint64_t hysteresis_of(const struct solver *solver)
{
    return PLACEMENT_MUTANT(HYSTERESIS_IGNORED)
               ? 0
               : solver->problem->hysteresis_permille * LOAD_PERMILLE;
}

static void move(struct solver *solver, struct unit *unit, int32_t bin)
{
    unit_take(solver, unit);
    unit_put(solver, unit, bin);
}

/* ---- Draining nodes -------------------------------------------------------------------------- */

bool solver_drain(struct solver *solver)
{
    bool has_moved = false;
    struct unit *unit;

    solver->leaving.count = 0;
    solver->leaving.order = HARDEST_FIRST;
    for (size_t i = 0; i < solver->problem->node_count; i++) {
        for (int32_t j = solver->problem->nodes[i].is_draining ? solver->bins[i].first : NOWHERE;
             j != NOWHERE; j = solver->units[j].next) {
            unit_queue_push(solver, &solver->leaving, &solver->units[j]);
        }
    }
    while (!PLACEMENT_MUTANT(DRAINING_KEEPS) && (unit = unit_queue_pop(solver, &solver->leaving))) {
        int32_t bin = solver_choose_bin(solver, unit);
        if (bin != NOWHERE) {
            move(solver, unit, bin);
            has_moved = true;
        }
    }
    return has_moved;
}

/* ---- Overfilled nodes ------------------------------------------------------------------------ */

/* Largest first, so that few have to move. */
static bool relieve_bin(struct solver *solver, const struct bin *bin, enum dimension dimension)
{
    bool has_moved = false;
    struct unit *unit;

    solver->leaving.count = 0;
    solver->leaving.order = LARGEST_FIRST;
    solver->leaving.dimension = dimension;
    for (int32_t i = bin->first; i != NOWHERE; i = solver->units[i].next) {
        if ((!solver->units[i].is_pinned || PLACEMENT_MUTANT(PINNED_RELIEVES)) &&
            solver->units[i].amount.of[dimension] > 0) {
            unit_queue_push(solver, &solver->leaving, &solver->units[i]);
        }
    }
    while (bin->used.of[dimension] > bin->size.of[dimension] &&
           (unit = unit_queue_pop(solver, &solver->leaving))) {
        int32_t target = solver_find_bin(solver, unit, &unit->amount, unit->bin);
        if (target != NOWHERE) {
            move(solver, unit, target);
            has_moved = true;
        }
    }
    return has_moved;
}

bool solver_relieve(struct solver *solver)
{
    bool has_moved = false;

    for (size_t i = 0; i < solver->problem->node_count; i++) {
        for (int j = 0; j < DIMENSIONS; j++) {
            if (solver->bins[i].used.of[j] > solver->bins[i].size.of[j] &&
                !PLACEMENT_MUTANT(OVERFILLED_KEEPS)) {
                has_moved |= relieve_bin(solver, &solver->bins[i], (enum dimension)j);
            }
        }
    }
    return has_moved;
}

/* ---- Balance --------------------------------------------------------------------------------- */

/* The bins are in a heap, the most loaded one first. */

static bool is_heavier(const struct solver *solver, int32_t a, int32_t b)
{
    uint64_t x = solver->bins[a].load, y = solver->bins[b].load;

    return x > y || (x == y && a < b);
}

/* Moves the bin to its place in the heap, from `at`. */
static void heap_place(struct solver *solver, uint32_t at, int32_t bin)
{
    int32_t *heap = solver->donors;

    for (; at > 0 && is_heavier(solver, bin, heap[(at - 1) / 2]); at = (at - 1) / 2) {
        heap[at] = heap[(at - 1) / 2];
        solver->bins[heap[at]].donor = at;
    }
    for (uint32_t below; (below = 2 * at + 1) < solver->donor_count; at = below) {
        below +=
            below + 1 < solver->donor_count && is_heavier(solver, heap[below + 1], heap[below]);
        if (is_heavier(solver, bin, heap[below])) {
            break;
        }
        heap[at] = heap[below];
        solver->bins[heap[at]].donor = at;
    }
    heap[at] = bin;
    solver->bins[bin].donor = at;
}

static void heap_push(struct solver *solver, int32_t bin)
{
    heap_place(solver, solver->donor_count++, bin);
}

static void heap_pop(struct solver *solver)
{
    int32_t last = solver->donors[--solver->donor_count];

    solver->bins[solver->donors[0]].donor = NO_DONOR;
    if (solver->donor_count > 0) {
        heap_place(solver, 0, last);
    }
}

struct offer {
    struct unit *unit; /* NULL: none */
    int32_t target;
    uint64_t load; /* the greater of the two bins, after the move */
};

/* The greater of the two loads after the move; UINT64_MAX: the move would not help. */
static uint64_t load_after(const struct solver *solver, const struct unit *unit, int32_t target)
{
    const struct bin *from = &solver->bins[unit->bin], *to = &solver->bins[target];
    uint64_t weight = unit->amount.of[WEIGHT];
    uint64_t lower =
        bin_load_with(solver, unit->bin, from->used.of[WEIGHT] - weight, from->items - unit->items);
    uint64_t higher =
        bin_load_with(solver, target, to->used.of[WEIGHT] + weight, to->items + unit->items);

    if (from->load <= to->load + hysteresis_of(solver) || lower >= from->load ||
        (higher >= from->load && !PLACEMENT_MUTANT(LOADS_SWAPPED))) {
        return UINT64_MAX;
    }
    return lower > higher ? lower : higher;
}

/* An overfilled bin may share with others that are full, if it stays full itself. */
static int32_t target_of(const struct solver *solver, const struct unit *unit)
{
    const struct bin *from = &solver->bins[unit->bin];
    struct amount amount = unit->amount;
    int32_t target = solver_find_lighter_bin(solver, unit, &amount);

    if (target == NOWHERE && solver->problem->overfills &&
        from->used.of[WEIGHT] >= from->size.of[WEIGHT] + amount.of[WEIGHT]) {
        amount.of[WEIGHT] = 0;
        target = solver_find_lighter_bin(solver, unit, &amount);
    }
    return target;
}

static bool is_like(const struct unit *a, const struct unit *b)
{
    return a->needs == b->needs && a->items == b->items && amount_fits(&a->amount, &b->amount) &&
           amount_fits(&b->amount, &a->amount);
}

/* Whether any bin that has what the unit needs is so much lighter, with room or not. */
static bool may_move(const struct solver *solver, const struct unit *unit)
{
    const struct bin *bin = &solver->bins[unit->bin];

    return !unit->is_pinned &&
           bin->load > needs_lightest_load(solver, unit->needs, solver->kinds[bin->kind].rank) +
                           hysteresis_of(solver);
}

static struct offer find_offer(struct solver *solver, const struct bin *bin)
{
    struct offer best = {.load = UINT64_MAX};
    const struct unit *last = NULL;
    int compared = 0;

    for (int32_t i = bin->first; i != NOWHERE && (compared < COMPARED_MAX || !best.unit);
         i = solver->units[i].next) {
        struct offer offer = {.unit = &solver->units[i]};
        if (!may_move(solver, offer.unit)) {
            continue;
        }
        compared++;
        if (last && is_like(offer.unit, last)) {
            continue;
        }
        last = offer.unit;
        offer.target = target_of(solver, offer.unit);
        offer.load =
            offer.target != NOWHERE ? load_after(solver, offer.unit, offer.target) : UINT64_MAX;
        if (offer.load < best.load) {
            best = offer;
        }
    }
    return best;
}

/* The most loaded bin gives, until no unit of any bin can move. Whether any has moved. */
static bool balance_once(struct solver *solver)
{
    uint32_t moves = 0;

    solver->donor_count = 0;
    for (size_t i = 0; i < solver->problem->node_count; i++) {
        if (solver->bins[i].takes) {
            heap_push(solver, (int32_t)i);
        }
    }
    while (solver->donor_count > 0 && moves < 2 * solver->unit_count) {
        int32_t from = solver->donors[0];
        struct bin *bin = &solver->bins[from];
        if (bin->load <= solver_least_load(solver) + hysteresis_of(solver)) {
            break;
        }
        struct offer offer = find_offer(solver, bin);
        if (!offer.unit) {
            heap_pop(solver);
            continue;
        }
        move(solver, offer.unit, offer.target);
        moves++;
        heap_place(solver, 0, from);
        if (solver->bins[offer.target].donor != NO_DONOR) {
            heap_place(solver, solver->bins[offer.target].donor, offer.target);
        }
    }
    return moves > 0;
}

bool solver_balance(struct solver *solver)
{
    int times = 0;

    while (times < TIMES_MAX && !PLACEMENT_MUTANT(IMBALANCE_KEPT) && balance_once(solver)) {
        times++;
    }
    return times > 0;
}

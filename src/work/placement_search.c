/* The bin for a unit. The bins of each kind are the leaves of a tree, so the least loaded one that
 * has room is found, and a change of one bin noted, in the logarithm of their number. */
#include "work/placement_int.h"
#include "work/placement_mutants.h"

#define LOAD_ONE (1000 * LOAD_PERMILLE)
#define LOAD_MAX (UINT64_MAX / 4) /* of a bin without slots */

/* ---- Amounts and loads ----------------------------------------------------------------------- */

bool amount_fits(const struct amount *amount, const struct amount *room)
{
    return amount->of[WEIGHT] <= room->of[WEIGHT] &&
           (amount->of[MEMORY] <= room->of[MEMORY] || PLACEMENT_MUTANT(MEMORY_NOT_COUNTED)) &&
           amount->of[GPUS] <= room->of[GPUS];
}

struct amount bin_free(const struct bin *bin)
{
    struct amount free;

    for (int i = 0; i < DIMENSIONS; i++) {
        free.of[i] = bin->size.of[i] > bin->used.of[i] ? bin->size.of[i] - bin->used.of[i] : 0;
    }
    return free;
}

static uint64_t ratio(uint64_t part, uint64_t whole)
{
    return whole == 0 || part > LOAD_MAX / LOAD_ONE ? LOAD_MAX : part * LOAD_ONE / whole;
}

uint64_t bin_load_with(const struct solver *solver, int32_t number, uint64_t weight, uint32_t items)
{
    const struct placement_node *node = &solver->problem->nodes[number];

    return solver->problem->strategy == PLACEMENT_ROUND_ROBIN
               ? ratio(items, solver->mean)
               : ratio(weight, node->slots) + node->cpu_permille * LOAD_PERMILLE;
}

/* ---- Trees ----------------------------------------------------------------------------------- */

static const struct branch nothing = {.load = UINT64_MAX, .bin = INT32_MAX, .priority = INT32_MAX};

static void join(struct branch *ret, const struct branch *a, const struct branch *b)
{
    const struct branch *first = b->load < a->load ? b : a;

    ret->load = first->load;
    ret->bin = first->bin;
    ret->priority = a->priority < b->priority ? a->priority : b->priority;
    for (int i = 0; i < DIMENSIONS; i++) {
        ret->free.of[i] = a->free.of[i] > b->free.of[i] ? a->free.of[i] : b->free.of[i];
    }
}

static struct branch leaf_of(const struct solver *solver, int32_t number)
{
    const struct bin *bin = &solver->bins[number];

    return (struct branch){
        .load = bin->load, .bin = number, .priority = bin->priority, .free = bin_free(bin)};
}

static void count_free(struct solver *solver, const struct amount *free, int sign)
{
    for (int i = 0; i < DIMENSIONS; i++) {
        solver->free.of[i] += sign > 0 ? free->of[i] : -free->of[i];
    }
}

void trees_build(struct solver *solver)
{
    for (int32_t i = 0; i < (int32_t)solver->problem->node_count; i++) {
        struct bin *bin = &solver->bins[i];
        bin->load = bin_load_with(solver, i, bin->used.of[WEIGHT], bin->items);
    }
    for (uint32_t i = 0; i < solver->keys.count; i++) {
        struct kind *kind = &solver->kinds[i];
        for (uint32_t j = 0; kind->bin_count > 0 && j < kind->leaves; j++) {
            struct branch *leaf = &kind->tree[kind->leaves + j];
            *leaf = j < kind->bin_count ? leaf_of(solver, kind->bins[j]) : nothing;
            count_free(solver, &leaf->free, 1);
        }
        for (size_t j = kind->bin_count > 0 ? kind->leaves - 1 : 0; j > 0; j--) {
            join(&kind->tree[j], &kind->tree[2 * j], &kind->tree[2 * j + 1]);
        }
    }
    solver->has_trees = true;
}

static void bin_note(struct solver *solver, int32_t number)
{
    struct bin *bin = &solver->bins[number];
    struct kind *kind = &solver->kinds[bin->kind];

    if (!solver->has_trees) {
        return;
    }
    bin->load = bin_load_with(solver, number, bin->used.of[WEIGHT], bin->items);
    solver->changes++;
    if (!bin->takes || PLACEMENT_MUTANT(TREE_STALE)) {
        return;
    }
    size_t at = kind->leaves + bin->leaf;
    count_free(solver, &kind->tree[at].free, -1);
    kind->tree[at] = leaf_of(solver, number);
    count_free(solver, &kind->tree[at].free, 1);
    for (at /= 2; at > 0; at /= 2) {
        join(&kind->tree[at], &kind->tree[2 * at], &kind->tree[2 * at + 1]);
    }
}

/* ---- Putting and taking ---------------------------------------------------------------------- */

void bin_charge(struct solver *solver, int32_t number, const struct amount *amount, uint32_t items)
{
    struct bin *bin = &solver->bins[number];

    for (int i = 0; i < DIMENSIONS; i++) {
        bin->used.of[i] += amount->of[i];
    }
    bin->items += items;
    bin_note(solver, number);
}

void bin_discharge(struct solver *solver, int32_t number, const struct amount *amount,
                   uint32_t items)
{
    struct bin *bin = &solver->bins[number];

    for (int i = 0; i < DIMENSIONS; i++) {
        bin->used.of[i] -= amount->of[i];
    }
    bin->items -= items;
    solver->freed = ++solver->stamp;
    bin_note(solver, number);
}

void unit_put(struct solver *solver, struct unit *unit, int32_t number)
{
    struct bin *bin = &solver->bins[number];

    unit->bin = number;
    unit->prev = NOWHERE;
    unit->next = bin->first;
    if (bin->first != NOWHERE) {
        solver->units[bin->first].prev = (int32_t)(unit - solver->units);
    }
    bin->first = (int32_t)(unit - solver->units);
    if (!unit->is_pinned && unit->priority <= bin->priority) {
        bin->lowest = unit->priority < bin->priority ? 1 : bin->lowest + 1;
        bin->priority = unit->priority;
    }
    bin_charge(solver, number, &unit->amount, unit->items);
}

/* Some units may have left it since the lowest priority was noted. */
static void note_lowest_priority(const struct solver *solver, struct bin *bin)
{
    bin->priority = INT32_MAX;
    bin->lowest = 0;
    for (int32_t i = bin->first; i != NOWHERE; i = solver->units[i].next) {
        const struct unit *unit = &solver->units[i];
        if (!unit->is_pinned && unit->priority <= bin->priority) {
            bin->lowest = unit->priority < bin->priority ? 1 : bin->lowest + 1;
            bin->priority = unit->priority;
        }
    }
}

void unit_take(struct solver *solver, struct unit *unit)
{
    int32_t number = unit->bin;
    struct bin *bin = &solver->bins[number];

    if (unit->prev != NOWHERE) {
        solver->units[unit->prev].next = unit->next;
    } else {
        bin->first = unit->next;
    }
    if (unit->next != NOWHERE) {
        solver->units[unit->next].prev = unit->prev;
    }
    unit->bin = NOWHERE;
    if (unit->priority == bin->priority && --bin->lowest == 0) {
        note_lowest_priority(solver, bin);
    }
    bin_discharge(solver, number, &unit->amount, unit->items);
}

/* ---- Searching ------------------------------------------------------------------------------- */

struct search {
    const struct amount *amount;
    int32_t except;
    uint64_t load; /* of the best bin so far */
    int32_t bin;   /* NOWHERE: none */
};

static bool is_before(const struct branch *branch, const struct search *search)
{
    if (PLACEMENT_MUTANT(WRONG_BIN_FIRST)) {
        return search->bin == NOWHERE;
    }
    return search->bin == NOWHERE || branch->load < search->load ||
           (branch->load == search->load && branch->bin < search->bin);
}

/* Below this branch; its depth is that of the tree. */
static void descend(struct search *search, const struct kind *kind, size_t at)
{
    const struct branch *branch = &kind->tree[at];

    if (!amount_fits(search->amount, &branch->free) || !is_before(branch, search)) {
        return;
    }
    if (at < kind->leaves) {
        size_t second = kind->tree[2 * at + 1].load < kind->tree[2 * at].load;
        descend(search, kind, 2 * at + second);
        descend(search, kind, 2 * at + !second);
    } else if (at - kind->leaves < kind->bin_count && branch->bin != search->except) {
        search->load = branch->load;
        search->bin = branch->bin;
    }
}

bool failure_holds(const struct solver *solver, const struct failure *failure,
                   const struct unit *unit)
{
    return failure->is_known &&
           (failure->freed == solver->freed || PLACEMENT_MUTANT(FAILURE_KEPT)) &&
           failure->priority >= unit->priority && amount_fits(&failure->amount, &unit->amount);
}

void failure_note(const struct solver *solver, struct failure *failure, const struct unit *unit)
{
    *failure = (struct failure){.is_known = true,
                                .freed = solver->freed,
                                .priority = unit->priority,
                                .amount = unit->amount};
}

int32_t solver_find_bin(struct solver *solver, const struct unit *unit, const struct amount *amount,
                        int32_t except)
{
    struct needs *needs = &solver->needs[unit->needs];
    struct unit asked = {.amount = *amount, .priority = INT32_MIN};
    struct search best = {.amount = amount, .except = except, .bin = NOWHERE};
    const struct kind *kind;
    uint64_t rank = 0;

    if (failure_holds(solver, &needs->no_room, &asked)) {
        return NOWHERE;
    }
    for (uint32_t at = 0; (kind = needs_next_kind(solver, needs, &at));) {
        struct search search = best;
        if (best.bin != NOWHERE && kind->rank > rank) {
            continue;
        }
        if (kind->rank < rank) {
            search.bin = NOWHERE;
        }
        descend(&search, kind, 1);
        if (search.bin != NOWHERE) {
            best = search;
            rank = kind->rank;
        }
    }
    if (best.bin == NOWHERE && except == NOWHERE) {
        failure_note(solver, &needs->no_room, &asked);
    }
    return best.bin;
}

int32_t solver_find_lighter_bin(const struct solver *solver, const struct unit *unit,
                                const struct amount *amount)
{
    const struct needs *needs = &solver->needs[unit->needs];
    uint64_t rank = solver->kinds[solver->bins[unit->bin].kind].rank;
    struct search search = {.amount = amount, .except = unit->bin, .bin = NOWHERE};
    const struct kind *kind;

    for (uint32_t at = 0; (kind = needs_next_kind(solver, needs, &at));) {
        if (kind->rank <= rank) {
            descend(&search, kind, 1);
        }
    }
    return search.bin;
}

uint64_t needs_lightest_load(const struct solver *solver, uint32_t number, uint64_t rank)
{
    struct needs *needs = &solver->needs[number];
    const struct kind *kind;

    if (needs->lightest_at != solver->changes || needs->lightest_rank != rank) {
        needs->lightest = UINT64_MAX / 2;
        needs->lightest_at = solver->changes;
        needs->lightest_rank = rank;
        for (uint32_t at = 0; (kind = needs_next_kind(solver, needs, &at));) {
            if (kind->rank <= rank && kind->tree[1].load < needs->lightest) {
                needs->lightest = kind->tree[1].load;
            }
        }
    }
    return needs->lightest;
}

uint64_t solver_least_load(const struct solver *solver)
{
    uint64_t least = UINT64_MAX / 2;

    for (uint32_t i = 0; i < solver->keys.count; i++) {
        const struct kind *kind = &solver->kinds[i];
        least = kind->bin_count > 0 && kind->tree[1].load < least ? kind->tree[1].load : least;
    }
    return least;
}

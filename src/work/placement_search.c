/* The bin for a unit. The bins of each class are the leaves of a tree, so the least loaded one that
 * has room is found, and a change of one bin noted, in the logarithm of their number. */
#include "work/placement_int.h"

#define LOAD_ONE      UINT64_C(1000000)
#define LOAD_MAX      (UINT64_MAX / 4) /* of a bin without slots */
#define LOAD_PERMILLE (LOAD_ONE / 1000)

/* ---- Amounts and loads ----------------------------------------------------------------------- */

bool amount_fits(const struct amount *amount, const struct amount *room)
{
    return amount->weight <= room->weight && amount->memory <= room->memory &&
           amount->gpus <= room->gpus;
}

static uint64_t left_of(uint64_t size, uint64_t used)
{
    return size > used ? size - used : 0;
}

struct amount bin_free(const struct bin *bin)
{
    return (struct amount){left_of(bin->size.weight, bin->used.weight),
                           left_of(bin->size.memory, bin->used.memory),
                           left_of(bin->size.gpus, bin->used.gpus)};
}

static uint64_t ratio(uint64_t part, uint64_t whole)
{
    return whole == 0 || part > LOAD_MAX / LOAD_ONE ? LOAD_MAX : part * LOAD_ONE / whole;
}

uint64_t bin_load_with(const struct work *work, int32_t number, uint64_t weight, uint32_t items)
{
    const struct placement_node *node = &work->problem->nodes[number];

    return work->problem->strategy == PLACEMENT_ROUND_ROBIN
               ? ratio(items, work->mean)
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
    ret->free.weight = a->free.weight > b->free.weight ? a->free.weight : b->free.weight;
    ret->free.memory = a->free.memory > b->free.memory ? a->free.memory : b->free.memory;
    ret->free.gpus = a->free.gpus > b->free.gpus ? a->free.gpus : b->free.gpus;
}

static struct branch leaf_of(const struct work *work, int32_t number)
{
    const struct bin *bin = &work->bins[number];

    return (struct branch){
        .load = bin->load, .bin = number, .priority = bin->priority, .free = bin_free(bin)};
}

void trees_build(struct work *work)
{
    for (uint32_t i = 0; i < work->kinds.count; i++) {
        struct class *class = &work->classes[i];
        for (uint32_t j = 0; class->bin_count > 0 && j < class->leaves; j++) {
            class->tree[class->leaves + j] =
                j < class->bin_count ? leaf_of(work, class->bins[j]) : nothing;
        }
        for (uint32_t j = class->bin_count > 0 ? class->leaves - 1 : 0; j > 0; j--) {
            join(&class->tree[j], &class->tree[2 * j], &class->tree[2 * j + 1]);
        }
    }
    work->has_trees = true;
}

static void bin_note(struct work *work, int32_t number)
{
    struct bin *bin = &work->bins[number];
    struct class *class = &work->classes[bin->class];

    bin->load = bin_load_with(work, number, bin->used.weight, bin->items);
    if (!bin->takes || !work->has_trees) {
        return;
    }
    uint32_t at = class->leaves + bin->leaf;
    class->tree[at] = leaf_of(work, number);
    for (at /= 2; at > 0; at /= 2) {
        join(&class->tree[at], &class->tree[2 * at], &class->tree[2 * at + 1]);
    }
}

/* ---- Putting and taking ---------------------------------------------------------------------- */

void bin_charge(struct work *work, int32_t number, const struct amount *amount, uint32_t items)
{
    struct bin *bin = &work->bins[number];

    bin->used.weight += amount->weight;
    bin->used.memory += amount->memory;
    bin->used.gpus += amount->gpus;
    bin->items += items;
    bin_note(work, number);
}

void bin_discharge(struct work *work, int32_t number, const struct amount *amount, uint32_t items)
{
    struct bin *bin = &work->bins[number];

    bin->used.weight -= amount->weight;
    bin->used.memory -= amount->memory;
    bin->used.gpus -= amount->gpus;
    bin->items -= items;
    work->freed++;
    bin_note(work, number);
}

void unit_put(struct work *work, struct unit *unit, int32_t number)
{
    struct bin *bin = &work->bins[number];

    unit->bin = number;
    unit->prev = NOWHERE;
    unit->next = bin->first;
    if (bin->first != NOWHERE) {
        work->units[bin->first].prev = (int32_t)(unit - work->units);
    }
    bin->first = (int32_t)(unit - work->units);
    if (!unit->is_pinned && unit->priority < bin->priority) {
        bin->priority = unit->priority;
    }
    bin_charge(work, number, &unit->amount, unit->items);
}

static int32_t lowest_priority(const struct work *work, const struct bin *bin)
{
    int32_t lowest = INT32_MAX;

    for (int32_t i = bin->first; i != NOWHERE; i = work->units[i].next) {
        const struct unit *unit = &work->units[i];
        lowest = !unit->is_pinned && unit->priority < lowest ? unit->priority : lowest;
    }
    return lowest;
}

void unit_take(struct work *work, struct unit *unit)
{
    int32_t number = unit->bin;
    struct bin *bin = &work->bins[number];

    if (unit->prev != NOWHERE) {
        work->units[unit->prev].next = unit->next;
    } else {
        bin->first = unit->next;
    }
    if (unit->next != NOWHERE) {
        work->units[unit->next].prev = unit->prev;
    }
    unit->bin = NOWHERE;
    if (unit->priority == bin->priority && work->problem->strategy == PLACEMENT_PRIORITY) {
        bin->priority = lowest_priority(work, bin);
    }
    bin_discharge(work, number, &unit->amount, unit->items);
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
    return search->bin == NOWHERE || branch->load < search->load ||
           (branch->load == search->load && branch->bin < search->bin);
}

/* Below this branch; its depth is that of the tree. */
static void descend(struct search *search, const struct class *class, uint32_t at)
{
    const struct branch *branch = &class->tree[at];

    if (!amount_fits(search->amount, &branch->free) || !is_before(branch, search)) {
        return;
    }
    if (at < class->leaves) {
        uint32_t second = class->tree[2 * at + 1].load < class->tree[2 * at].load;
        descend(search, class, 2 * at + second);
        descend(search, class, 2 * at + !second);
    } else if (at - class->leaves < class->bin_count && branch->bin != search->except) {
        search->load = branch->load;
        search->bin = branch->bin;
    }
}

static bool is_as_large(const struct amount *amount, const struct amount *other)
{
    return amount_fits(other, amount);
}

int32_t find_bin(struct work *work, const struct unit *unit, const struct amount *amount)
{
    struct needs *needs = &work->needs[unit->needs];
    struct search best = {.amount = amount, .except = NOWHERE, .bin = NOWHERE};
    const struct class *class;
    uint64_t rank = 0;

    if (needs->has_failed && needs->failed_at == work->freed &&
        is_as_large(amount, &needs->failed)) {
        return NOWHERE;
    }
    for (uint32_t at = 0; (class = needs_next_class(work, needs, &at));) {
        struct search search = best;
        if (best.bin != NOWHERE && class->rank > rank) {
            continue;
        }
        if (class->rank < rank) {
            search.bin = NOWHERE;
        }
        descend(&search, class, 1);
        if (search.bin != NOWHERE) {
            best = search;
            rank = class->rank;
        }
    }
    if (best.bin == NOWHERE) {
        needs->failed = *amount;
        needs->failed_at = work->freed;
        needs->has_failed = true;
    }
    return best.bin;
}

int32_t find_lighter_bin(const struct work *work, const struct unit *unit,
                         const struct amount *amount)
{
    const struct needs *needs = &work->needs[unit->needs];
    uint64_t rank = work->classes[work->bins[unit->bin].class].rank;
    struct search search = {.amount = amount, .except = unit->bin, .bin = NOWHERE};
    const struct class *class;

    for (uint32_t at = 0; (class = needs_next_class(work, needs, &at));) {
        if (class->rank <= rank) {
            descend(&search, class, 1);
        }
    }
    return search.bin;
}

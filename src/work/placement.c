/* The steps: place what waits, empty draining nodes, relieve overfilled ones, balance; again while
 * one of them made room for what still waits. Each step leaves alone what is right already, so the
 * answer to an answer is the same. */
#include "base/error.h"
#include "work/placement_int.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS_MAX = 8 };

/* ---- Names ----------------------------------------------------------------------------------- */

const char *placement_reason_text(enum placement_reason reason)
{
    static const char *const texts[] = {
#define TEXT_OF_REASON(symbol, text) [symbol] = (text),
        PLACEMENT_REASONS(TEXT_OF_REASON)
#undef TEXT_OF_REASON
    };

    return texts[reason];
}

static const char *const strategy_names[] = {
#define NAME_OF_STRATEGY(symbol, name) [symbol] = (name),
    PLACEMENT_STRATEGIES(NAME_OF_STRATEGY)
#undef NAME_OF_STRATEGY
};

const char *placement_strategy_name(enum placement_strategy strategy)
{
    return strategy_names[strategy];
}

bool placement_strategy_parse(const char *name, enum placement_strategy *ret)
{
    for (size_t i = 0; i < sizeof(strategy_names) / sizeof(strategy_names[0]); i++) {
        if (strcmp(name, strategy_names[i]) == 0) {
            *ret = (enum placement_strategy)i;
            return true;
        }
    }
    return false;
}

/* ---- The queue: who is placed first ---------------------------------------------------------- */

/* What is hardest to place comes first: few nodes may have it, it needs GPUs, it is large. */
static bool goes_before(const struct work *work, uint32_t a, uint32_t b)
{
    const struct unit *x = &work->units[a], *y = &work->units[b];
    uint32_t x_bins = work->needs[x->needs].bins, y_bins = work->needs[y->needs].bins;

    if (work->problem->strategy == PLACEMENT_PRIORITY && x->priority != y->priority) {
        return x->priority > y->priority;
    }
    if (x_bins != y_bins) {
        return x_bins < y_bins;
    }
    if (x->amount.gpus != y->amount.gpus) {
        return x->amount.gpus > y->amount.gpus;
    }
    if (x->amount.weight != y->amount.weight) {
        return x->amount.weight > y->amount.weight;
    }
    return x->amount.memory != y->amount.memory ? x->amount.memory > y->amount.memory : a < b;
}

static void queue_push(struct work *work, uint32_t unit)
{
    uint32_t *queue = work->queue;
    uint32_t at = work->queued++;

    for (; at > 0 && goes_before(work, unit, queue[(at - 1) / 2]); at = (at - 1) / 2) {
        queue[at] = queue[(at - 1) / 2];
    }
    queue[at] = unit;
}

static struct unit *queue_pop(struct work *work)
{
    uint32_t *queue = work->queue;
    uint32_t first = queue[0];
    uint32_t last = queue[--work->queued];
    uint32_t at = 0;

    for (uint32_t below; (below = 2 * at + 1) < work->queued; at = below) {
        below += below + 1 < work->queued && goes_before(work, queue[below + 1], queue[below]);
        if (goes_before(work, last, queue[below])) {
            break;
        }
        queue[at] = queue[below];
    }
    queue[at] = last;
    return &work->units[first];
}

/* ---- Placing what waits ---------------------------------------------------------------------- */

static struct amount amount_kept(const struct work *work, const struct unit *unit, int32_t bin)
{
    struct amount kept = {0};

    for (int32_t i = unit->first_item; unit->is_scattered && i != NOWHERE; i = work->next_item[i]) {
        const struct placement_item *item = &work->problem->items[i];
        if (work->kept[i] == bin) {
            kept.weight += item->weight;
            kept.memory += item->memory_mib;
            kept.gpus += item->gpus;
        }
    }
    return kept;
}

/* Whether the rest of a group has room where most of it is. */
static bool fits_at_anchor(const struct work *work, const struct unit *unit, bool overfills)
{
    const struct bin *bin = unit->anchor != NOWHERE ? &work->bins[unit->anchor] : NULL;

    if (!bin || !bin->takes) {
        return false;
    }
    struct amount kept = amount_kept(work, unit, unit->anchor);
    struct amount free = bin_free(bin);
    struct amount rest = {overfills ? 0 : unit->amount.weight - kept.weight,
                          unit->amount.memory - kept.memory, unit->amount.gpus - kept.gpus};
    return amount_fits(&rest, &free);
}

static int32_t choose_bin(struct work *work, const struct unit *unit, bool overfills)
{
    struct amount amount = unit->amount;

    if (fits_at_anchor(work, unit, overfills)) {
        return unit->anchor;
    }
    amount.weight = overfills ? 0 : amount.weight;
    return unit->is_pinned ? NOWHERE : find_bin(work, unit, &amount);
}

/* Puts a waiting unit there; the items of a group that have bins leave them. */
static void gather(struct work *work, struct unit *unit, int32_t bin)
{
    for (int32_t i = unit->first_item; unit->is_scattered && i != NOWHERE; i = work->next_item[i]) {
        const struct placement_item *item = &work->problem->items[i];
        if (work->kept[i] != NOWHERE) {
            struct amount amount = {item->weight, item->memory_mib, item->gpus};
            bin_discharge(work, work->kept[i], &amount, 1);
        }
    }
    unit->is_scattered = false;
    unit->is_displaced = false;
    unit_put(work, unit, bin);
}

static void place_waiting(struct work *work)
{
    while (work->waiting_count > 0) {
        queue_push(work, work->waiting[--work->waiting_count]);
    }
    while (work->queued > 0) {
        struct unit *unit = queue_pop(work);
        int32_t bin = choose_bin(work, unit, false);
        if (bin == NOWHERE && work->problem->overfills) {
            bin = choose_bin(work, unit, true);
        }
        if (bin != NOWHERE) {
            gather(work, unit, bin);
        } else {
            work->waiting[work->waiting_count++] = (uint32_t)(unit - work->units);
        }
    }
}

/* ---- Draining nodes -------------------------------------------------------------------------- */

static bool drain(struct work *work)
{
    bool has_moved = false;

    for (size_t i = 0; i < work->problem->node_count; i++) {
        for (int32_t j = work->problem->nodes[i].is_draining ? work->bins[i].first : NOWHERE;
             j != NOWHERE; j = work->units[j].next) {
            if (!work->units[j].is_pinned) {
                queue_push(work, (uint32_t)j);
            }
        }
    }
    while (work->queued > 0) {
        struct unit *unit = queue_pop(work);
        int32_t bin = choose_bin(work, unit, false);
        if (bin == NOWHERE && work->problem->overfills) {
            bin = choose_bin(work, unit, true);
        }
        if (bin != NOWHERE) {
            unit_take(work, unit);
            unit_put(work, unit, bin);
            has_moved = true;
        }
    }
    return has_moved;
}

/* ---- The answer ------------------------------------------------------------------------------ */

static enum placement_reason reason_of(const struct work *work, const struct unit *unit)
{
    const struct needs *needs = &work->needs[unit->needs];
    const struct class *class;

    if (work->takers == 0) {
        return PLACEMENT_NO_NODES;
    }
    if (unit->is_pinned) {
        return PLACEMENT_GROUP_HELD;
    }
    if (unit->is_displaced) {
        return PLACEMENT_DISPLACED;
    }
    if (needs->bins == 0) {
        return PLACEMENT_NO_CAPABLE_NODE;
    }
    enum placement_reason reason = PLACEMENT_NO_CAPABLE_NODE;
    for (uint32_t at = 0; (class = needs_next_class(work, needs, &at));) {
        for (uint32_t i = 0; i < class->bin_count; i++) {
            const struct amount *size = &work->bins[class->bins[i]].size;
            if (unit->amount.memory > size->memory || unit->amount.gpus > size->gpus) {
                continue;
            }
            if (unit->amount.weight <= size->weight) {
                return PLACEMENT_NO_ROOM;
            }
            reason = PLACEMENT_ITEM_TOO_LARGE;
        }
    }
    return unit->items > 1 ? PLACEMENT_GROUP_TOO_LARGE : reason;
}

static void answer_unit(struct work *work, const struct unit *unit, struct placement_place *places)
{
    enum placement_reason reason = unit->bin == NOWHERE ? reason_of(work, unit) : PLACEMENT_PLACED;

    for (int32_t i = unit->first_item; i != NOWHERE; i = work->next_item[i]) {
        int32_t node = unit->bin != NOWHERE ? unit->bin
                       : unit->is_scattered ? work->kept[i]
                                            : NOWHERE;
        bool overfills =
            node != NOWHERE && work->bins[node].used.weight > work->bins[node].size.weight;
        places[i] = (struct placement_place){node, node == NOWHERE ? reason
                                                   : overfills     ? PLACEMENT_OVERFILLS
                                                                   : PLACEMENT_PLACED};
    }
}

static void count(const struct placement_problem *problem, struct placement_answer *answer)
{
    for (size_t i = 0; i < problem->item_count; i++) {
        int32_t before = problem->items[i].node;
        int32_t after = answer->places[i].node;
        answer->placed += after != NOWHERE;
        answer->started += before == NOWHERE && after != NOWHERE;
        answer->moved += before != NOWHERE && after != NOWHERE && before != after;
        answer->stopped += before != NOWHERE && after == NOWHERE;
    }
}

int placement_solve(const struct placement_problem *problem, struct placement_answer *ret)
{
    struct placement_answer answer = {.places =
                                          calloc(problem->item_count + 1, sizeof(*answer.places))};
    struct work *work = answer.places ? work_new(problem) : NULL;

    if (!work) {
        free(answer.places);
        return BATON_ENOMEM;
    }
    units_make(work);
    trees_build(work);
    bool has_moved = true;
    for (int round = 0; has_moved && round < ROUNDS_MAX; round++) {
        place_waiting(work);
        has_moved = drain(work);
    }
    for (uint32_t i = 0; i < work->unit_count; i++) {
        answer_unit(work, &work->units[i], answer.places);
    }
    count(problem, &answer);
    answer.bytes = work->bytes;
    free(work);
    *ret = answer;
    return BATON_OK;
}

void placement_answer_fini(struct placement_answer *answer)
{
    free(answer->places);
    *answer = (struct placement_answer){0};
}

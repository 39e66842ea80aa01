/* Items become units. A unit keeps today's node, or waits for one. */
#include "base/invariant.h"
#include "work/placement_int.h"
#include "work/placement_mutants.h"

#include <string.h>

struct amount item_amount(const struct solver *solver, int32_t i)
{
    const struct placement_item *item = &solver->problem->items[i];

    return (struct amount){{item->weight, item->memory_mib, item->gpus}};
}

/* Today's bin, if the item by itself may stay there. */
static int32_t kept_by(const struct solver *solver, size_t i)
{
    const struct placement_item *item = &solver->problem->items[i];
    const struct bin *bin = item->node != NOWHERE ? &solver->bins[item->node] : NULL;

    INVARIANT(item->node >= NOWHERE);
    INVARIANT(item->node < (int32_t)solver->problem->node_count);
    if (!bin || (!solver->problem->nodes[item->node].is_healthy && !PLACEMENT_MUTANT(DEAD_KEEPS))) {
        return NOWHERE;
    }
    if (item->is_pinned || PLACEMENT_MUTANT(UNFIT_KEEPS)) {
        return item->node;
    }
    return kind_has(&solver->kinds[bin->kind], &solver->needs[solver->item_needs[i]]) &&
                   item->memory_mib <= bin->size.of[MEMORY] && item->gpus <= bin->size.of[GPUS]
               ? item->node
               : NOWHERE;
}

/* ---- Units of groups ------------------------------------------------------------------------- */

static struct unit *unit_new(struct solver *solver)
{
    struct unit *unit = &solver->units[solver->unit_count++];

    *unit = (struct unit){
        .first_item = NOWHERE, .priority = INT32_MIN, .bin = NOWHERE, .anchor = NOWHERE};
    return unit;
}

static void unit_add_item(struct solver *solver, struct unit *unit, int32_t i)
{
    solver->next_item[i] = unit->first_item;
    unit->first_item = i;
}

static bool is_fixed(const struct solver *solver, int32_t i)
{
    return solver->problem->items[i].is_pinned && solver->kept[i] != NOWHERE;
}

/* The bin that has the most items of the group, only of the pinned ones if there are any; the first
 * of equals. */
static int32_t anchor_of(const struct solver *solver, const struct unit *unit, bool *ret_is_pinned)
{
    int32_t best = NOWHERE;

    *ret_is_pinned = false;
    for (int32_t i = unit->first_item; i != NOWHERE; i = solver->next_item[i]) {
        *ret_is_pinned |= is_fixed(solver, i);
    }
    for (int32_t i = unit->first_item; i != NOWHERE; i = solver->next_item[i]) {
        int32_t bin = solver->kept[i];
        if (bin == NOWHERE || (*ret_is_pinned && !is_fixed(solver, i))) {
            continue;
        }
        solver->scratch[bin]++;
        if (best == NOWHERE || solver->scratch[bin] > solver->scratch[best] ||
            (bin < best && solver->scratch[bin] == solver->scratch[best])) {
            best = bin;
        }
    }
    for (int32_t i = unit->first_item; i != NOWHERE; i = solver->next_item[i]) {
        if (solver->kept[i] != NOWHERE) {
            solver->scratch[solver->kept[i]] = 0;
        }
    }
    return best;
}

/* Pinned items that are elsewhere cannot come; each becomes a unit of its own. */
static void split_off_strays(struct solver *solver, struct unit *unit)
{
    int32_t next;
    int32_t i = unit->first_item;

    unit->first_item = NOWHERE;
    for (; i != NOWHERE; i = next) {
        bool is_stray = is_fixed(solver, i) && solver->kept[i] != unit->anchor;
        next = solver->next_item[i];
        unit_add_item(solver, is_stray ? unit_new(solver) : unit, i);
    }
}

/* What all items of a unit need; those that are pinned have what they get. */
static uint32_t needs_of(struct solver *solver, const struct unit *unit)
{
    uint32_t needs = solver->item_needs[unit->first_item];
    uint32_t first = solver->need_labels_used;
    bool is_same = !unit->is_pinned;

    for (int32_t i = unit->first_item; i != NOWHERE; i = solver->next_item[i]) {
        is_same &= solver->item_needs[i] == needs;
    }
    if (is_same || PLACEMENT_MUTANT(LABEL_LOST)) {
        return needs;
    }
    for (int32_t i = unit->first_item; i != NOWHERE; i = solver->next_item[i]) {
        const struct needs *more = &solver->needs[solver->item_needs[i]];
        if (!is_fixed(solver, i)) {
            memcpy(solver->need_labels + solver->need_labels_used, more->labels,
                   more->count * sizeof(*more->labels));
            solver->need_labels_used += more->count;
        }
    }
    return needs_add(solver, first);
}

static void sum_up(struct solver *solver, struct unit *unit)
{
    for (int32_t i = unit->first_item; i != NOWHERE; i = solver->next_item[i]) {
        const struct placement_item *item = &solver->problem->items[i];
        struct amount amount = item_amount(solver, i);
        for (int j = 0; j < DIMENSIONS; j++) {
            unit->amount.of[j] += amount.of[j];
        }
        unit->priority = item->priority > unit->priority ? item->priority : unit->priority;
        unit->items++;
    }
    unit->needs = needs_of(solver, unit);
}

static const char *key_of(const struct solver *solver, size_t i)
{
    return PLACEMENT_MUTANT(GROUP_IGNORED) ? NULL : solver->problem->items[i].together;
}

static void make_groups(struct solver *solver)
{
    uint32_t groups;

    for (size_t i = 0; i < solver->problem->item_count; i++) {
        const char *key = key_of(solver, i);
        uint32_t group = key ? intern_add(&solver->groups, key, strlen(key)) : solver->unit_count;
        if (key) {
            unit_add_item(solver,
                          group < solver->unit_count ? &solver->units[group] : unit_new(solver),
                          (int32_t)i);
        }
    }
    groups = solver->unit_count;
    for (uint32_t i = 0; i < groups; i++) {
        struct unit *unit = &solver->units[i];
        unit->anchor = anchor_of(solver, unit, &unit->is_pinned);
        if (unit->is_pinned && !PLACEMENT_MUTANT(STRAY_PULLED)) {
            split_off_strays(solver, unit);
        }
    }
    for (size_t i = 0; i < solver->problem->item_count; i++) {
        if (!key_of(solver, i)) {
            unit_add_item(solver, unit_new(solver), (int32_t)i);
        }
    }
    for (uint32_t i = 0; i < solver->unit_count; i++) {
        struct unit *unit = &solver->units[i];
        sum_up(solver, unit);
        if (unit->items == 1) {
            unit->anchor = solver->kept[unit->first_item];
            unit->is_pinned = is_fixed(solver, unit->first_item);
        }
    }
}

/* ---- Where they are -------------------------------------------------------------------------- */

/* Whether all items of a unit are in its anchor. */
static bool is_whole(const struct solver *solver, const struct unit *unit)
{
    for (int32_t i = unit->first_item; i != NOWHERE; i = solver->next_item[i]) {
        if (solver->kept[i] != unit->anchor) {
            return false;
        }
    }
    return unit->anchor != NOWHERE;
}

/* A group may need more than the items that are there. */
static bool can_stay(const struct solver *solver, const struct unit *unit)
{
    const struct bin *bin = unit->anchor != NOWHERE ? &solver->bins[unit->anchor] : NULL;

    return bin &&
           (unit->is_pinned || (kind_has(&solver->kinds[bin->kind], &solver->needs[unit->needs]) &&
                                unit->amount.of[MEMORY] <= bin->size.of[MEMORY] &&
                                unit->amount.of[GPUS] <= bin->size.of[GPUS]));
}

static void settle_unit(struct solver *solver, struct unit *unit)
{
    if (is_whole(solver, unit) && can_stay(solver, unit)) {
        unit_put(solver, unit, unit->anchor);
        return;
    }
    for (int32_t i = unit->first_item; i != NOWHERE; i = solver->next_item[i]) {
        if (solver->kept[i] != NOWHERE) {
            struct amount amount = item_amount(solver, i);
            bin_charge(solver, solver->kept[i], &amount, 1);
            unit->is_scattered = true;
        }
    }
    if (!can_stay(solver, unit)) {
        unit->anchor = unit->is_pinned ? unit->anchor : NOWHERE;
    }
    solver->waiting[solver->waiting_count++] = (uint32_t)(unit - solver->units);
}

void units_make(struct solver *solver)
{
    for (size_t i = 0; i < solver->problem->item_count; i++) {
        solver->kept[i] = kept_by(solver, i);
    }
    make_groups(solver);
    needs_count_bins(solver);
    for (uint32_t i = 0; i < solver->unit_count; i++) {
        settle_unit(solver, &solver->units[i]);
    }
}

/* Items become units. A unit keeps today's node, or waits for one. */
#include "work/placement_int.h"

#include <string.h>

static struct amount amount_of(const struct placement_item *item)
{
    return (struct amount){item->weight, item->memory_mib, item->gpus};
}

static void amount_add(struct amount *sum, const struct amount *more)
{
    sum->weight += more->weight;
    sum->memory += more->memory;
    sum->gpus += more->gpus;
}

/* Today's bin, if the item by itself may stay there. */
static int32_t kept_by(const struct work *work, size_t i)
{
    const struct placement_item *item = &work->problem->items[i];
    const struct bin *bin = item->node != NOWHERE ? &work->bins[item->node] : NULL;

    if (!bin || !work->problem->nodes[item->node].is_healthy) {
        return NOWHERE;
    }
    if (item->is_pinned) {
        return item->node;
    }
    return class_has(&work->classes[bin->class], &work->needs[work->item_needs[i]]) &&
                   item->memory_mib <= bin->size.memory && item->gpus <= bin->size.gpus
               ? item->node
               : NOWHERE;
}

/* ---- Units of groups ------------------------------------------------------------------------- */

static struct unit *unit_new(struct work *work)
{
    struct unit *unit = &work->units[work->unit_count++];

    *unit = (struct unit){.first_item = NOWHERE,
                          .priority = INT32_MIN,
                          .bin = NOWHERE,
                          .home = NOWHERE,
                          .anchor = NOWHERE};
    return unit;
}

static void unit_add_item(struct work *work, struct unit *unit, int32_t i)
{
    work->next_item[i] = unit->first_item;
    unit->first_item = i;
}

static bool is_fixed(const struct work *work, int32_t i)
{
    return work->problem->items[i].is_pinned && work->kept[i] != NOWHERE;
}

/* The bin that has the most items of the group, only of the pinned ones if there are any; the first
 * of equals. */
static int32_t anchor_of(const struct work *work, const struct unit *unit, bool *ret_is_pinned)
{
    int32_t best = NOWHERE;

    *ret_is_pinned = false;
    for (int32_t i = unit->first_item; i != NOWHERE; i = work->next_item[i]) {
        *ret_is_pinned |= is_fixed(work, i);
    }
    for (int32_t i = unit->first_item; i != NOWHERE; i = work->next_item[i]) {
        int32_t bin = work->kept[i];
        if (bin == NOWHERE || (*ret_is_pinned && !is_fixed(work, i))) {
            continue;
        }
        work->scratch[bin]++;
        if (best == NOWHERE || work->scratch[bin] > work->scratch[best] ||
            (work->scratch[bin] == work->scratch[best] && bin < best)) {
            best = bin;
        }
    }
    for (int32_t i = unit->first_item; i != NOWHERE; i = work->next_item[i]) {
        if (work->kept[i] != NOWHERE) {
            work->scratch[work->kept[i]] = 0;
        }
    }
    return best;
}

/* Pinned items that are elsewhere cannot come; each becomes a unit of its own. */
static void split_off_strays(struct work *work, struct unit *unit)
{
    int32_t next;
    int32_t i = unit->first_item;

    unit->first_item = NOWHERE;
    for (; i != NOWHERE; i = next) {
        bool is_stray = is_fixed(work, i) && work->kept[i] != unit->anchor;
        next = work->next_item[i];
        unit_add_item(work, is_stray ? unit_new(work) : unit, i);
    }
}

/* What all items of a unit need. */
static uint32_t needs_of(struct work *work, const struct unit *unit)
{
    uint32_t needs = work->item_needs[unit->first_item];
    uint32_t first = work->need_labels_used;
    bool is_same = true;

    for (int32_t i = unit->first_item; i != NOWHERE; i = work->next_item[i]) {
        is_same &= work->item_needs[i] == needs;
    }
    if (is_same) {
        return needs;
    }
    for (int32_t i = unit->first_item; i != NOWHERE; i = work->next_item[i]) {
        const struct needs *more = &work->needs[work->item_needs[i]];
        memcpy(work->need_labels + work->need_labels_used, more->labels,
               more->count * sizeof(*more->labels));
        work->need_labels_used += more->count;
    }
    return needs_add(work, first);
}

static void sum_up(struct work *work, struct unit *unit)
{
    for (int32_t i = unit->first_item; i != NOWHERE; i = work->next_item[i]) {
        const struct placement_item *item = &work->problem->items[i];
        struct amount amount = amount_of(item);
        amount_add(&unit->amount, &amount);
        unit->priority = item->priority > unit->priority ? item->priority : unit->priority;
        unit->items++;
    }
    unit->needs = needs_of(work, unit);
}

static void make_groups(struct work *work)
{
    uint32_t groups;

    for (size_t i = 0; i < work->problem->item_count; i++) {
        const char *key = work->problem->items[i].together;
        uint32_t group = key ? intern_add(&work->groups, key, strlen(key)) : work->unit_count;
        if (key) {
            unit_add_item(work, group < work->unit_count ? &work->units[group] : unit_new(work),
                          (int32_t)i);
        }
    }
    groups = work->unit_count;
    for (uint32_t i = 0; i < groups; i++) {
        struct unit *unit = &work->units[i];
        unit->anchor = anchor_of(work, unit, &unit->is_pinned);
        if (unit->is_pinned) {
            split_off_strays(work, unit);
        }
    }
    for (size_t i = 0; i < work->problem->item_count; i++) {
        if (!work->problem->items[i].together) {
            unit_add_item(work, unit_new(work), (int32_t)i);
        }
    }
    for (uint32_t i = 0; i < work->unit_count; i++) {
        struct unit *unit = &work->units[i];
        sum_up(work, unit);
        if (unit->items == 1) {
            unit->anchor = work->kept[unit->first_item];
            unit->is_pinned = is_fixed(work, unit->first_item);
        }
    }
}

/* ---- Where they are -------------------------------------------------------------------------- */

/* Whether all items of a unit are in its anchor. */
static bool is_whole(const struct work *work, const struct unit *unit)
{
    for (int32_t i = unit->first_item; i != NOWHERE; i = work->next_item[i]) {
        if (work->kept[i] != unit->anchor) {
            return false;
        }
    }
    return unit->anchor != NOWHERE;
}

/* A group may need more than the items that are there. */
static bool can_stay(const struct work *work, const struct unit *unit)
{
    const struct bin *bin = unit->anchor != NOWHERE ? &work->bins[unit->anchor] : NULL;

    return bin &&
           (unit->is_pinned ||
            (class_has(&work->classes[bin->class], &work->needs[unit->needs]) &&
             unit->amount.memory <= bin->size.memory && unit->amount.gpus <= bin->size.gpus));
}

static void settle_unit(struct work *work, struct unit *unit)
{
    if (is_whole(work, unit) && can_stay(work, unit)) {
        unit->home = unit->anchor;
        unit_put(work, unit, unit->anchor);
        return;
    }
    for (int32_t i = unit->first_item; i != NOWHERE; i = work->next_item[i]) {
        if (work->kept[i] != NOWHERE) {
            struct amount amount = amount_of(&work->problem->items[i]);
            bin_charge(work, work->kept[i], &amount, 1);
            unit->is_scattered = true;
        }
    }
    if (!can_stay(work, unit)) {
        unit->anchor = unit->is_pinned ? unit->anchor : NOWHERE;
    }
    work->waiting[work->waiting_count++] = (uint32_t)(unit - work->units);
}

void units_make(struct work *work)
{
    for (size_t i = 0; i < work->problem->item_count; i++) {
        work->kept[i] = kept_by(work, i);
    }
    make_groups(work);
    needs_count_bins(work);
    for (uint32_t i = 0; i < work->unit_count; i++) {
        settle_unit(work, &work->units[i]);
    }
}

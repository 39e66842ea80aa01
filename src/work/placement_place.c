/* Places the units that wait. Where no bin has room, others make room: they move to another bin, or
 * they are displaced because they are less important. */
#include "work/placement_int.h"
#include "work/placement_mutants.h"

enum { LOOKS_MAX = 50000 }; /* at bins, units and kinds, in each round to make room */

/* ---- A bin with room ------------------------------------------------------------------------- */

static struct amount amount_kept(const struct solver *solver, const struct unit *unit, int32_t bin)
{
    struct amount kept = {0};

    for (int32_t i = unit->first_item; unit->is_scattered && i != NOWHERE;
         i = solver->next_item[i]) {
        struct amount amount = item_amount(solver, i);
        for (int j = 0; solver->kept[i] == bin && j < DIMENSIONS; j++) {
            kept.of[j] += amount.of[j];
        }
    }
    return kept;
}

/* Whether the rest of a group has room where most of it is. */
static bool fits_at_anchor(const struct solver *solver, const struct unit *unit, bool overfills)
{
    const struct bin *bin = unit->anchor != NOWHERE ? &solver->bins[unit->anchor] : NULL;
    struct amount rest = unit->amount;

    if (!bin || !bin->takes || PLACEMENT_MUTANT(REST_WAITS) ||
        !kind_has(&solver->kinds[bin->kind], &solver->needs[unit->needs])) {
        return false;
    }
    struct amount kept = amount_kept(solver, unit, unit->anchor);
    struct amount free = bin_free(bin);
    for (int i = 0; i < DIMENSIONS; i++) {
        rest.of[i] -= kept.of[i];
    }
    rest.of[WEIGHT] = overfills ? 0 : rest.of[WEIGHT];
    return amount_fits(&rest, &free);
}

static int32_t bin_with_room(struct solver *solver, const struct unit *unit, bool overfills)
{
    struct amount amount = unit->amount;

    if (unit->bin == NOWHERE && fits_at_anchor(solver, unit, overfills)) {
        return unit->anchor;
    }
    amount.of[WEIGHT] = overfills ? 0 : amount.of[WEIGHT];
    return unit->is_pinned ? NOWHERE : solver_find_bin(solver, unit, &amount, unit->bin);
}

static bool may_overfill(const struct solver *solver)
{
    return (solver->problem->overfills && !PLACEMENT_MUTANT(OVERFILLS_NEVER)) ||
           PLACEMENT_MUTANT(OVERFILLS_UNASKED);
}

int32_t solver_choose_bin(struct solver *solver, const struct unit *unit)
{
    int32_t bin = bin_with_room(solver, unit, false);

    return bin == NOWHERE && may_overfill(solver) ? bin_with_room(solver, unit, true) : bin;
}

/* ---- Room that others make ------------------------------------------------------------------- */

static bool has_room(const struct bin *bin, const struct unit *unit)
{
    struct amount free = bin_free(bin);

    return amount_fits(&unit->amount, &free);
}

/* The first dimension in which the bin has no room for the unit, of those in which `other` could
 * make some; DIMENSIONS: none. */
static int lack_of(const struct bin *bin, const struct unit *unit, const struct unit *other)
{
    struct amount free = bin_free(bin);
    int i = 0;

    while (i < DIMENSIONS &&
           (unit->amount.of[i] <= free.of[i] || (other && other->amount.of[i] == 0))) {
        i++;
    }
    return i;
}

/* Collects the units that may leave; false: if all of them left, there would be no room either. */
static bool collect(struct solver *solver, const struct bin *bin, const struct unit *unit,
                    bool displaces)
{
    struct amount room = bin_free(bin);
    int lack = lack_of(bin, unit, NULL);

    solver->looks++;
    solver->leaving.count = 0;
    solver->leaving.order = displaces ? LEAST_IMPORTANT_FIRST : LARGEST_FIRST;
    solver->leaving.dimension = lack < DIMENSIONS ? (enum dimension)lack : WEIGHT;
    if (!amount_fits(&unit->amount, &bin->size)) {
        return false;
    }
    for (int32_t i = bin->first; i != NOWHERE; i = solver->units[i].next) {
        const struct unit *other = &solver->units[i];
        solver->looks++;
        if (other->is_pinned ||
            (displaces && other->priority >= unit->priority + PLACEMENT_MUTANT(DISPLACES_EQUALS))) {
            continue;
        }
        for (int j = 0; j < DIMENSIONS; j++) {
            room.of[j] += other->amount.of[j];
        }
        unit_queue_push(solver, &solver->leaving, other);
    }
    return amount_fits(&unit->amount, &room);
}

static void bring_back(struct solver *solver, struct unit *unit, int32_t bin)
{
    if (unit->bin != NOWHERE) {
        unit_take(solver, unit);
    }
    unit_put(solver, unit, bin);
}

/* Lets units leave the bin until it has room. False: they have come back. */
static bool clear_bin(struct solver *solver, int32_t number, const struct unit *unit,
                      bool displaces)
{
    const struct bin *bin = &solver->bins[number];
    uint64_t freed = solver->freed;
    uint32_t left = 0;
    struct unit *other;

    if (!collect(solver, bin, unit, displaces)) {
        return false;
    }
    while (!has_room(bin, unit) && solver->looks < LOOKS_MAX &&
           (other = unit_queue_pop(solver, &solver->leaving))) {
        solver->looks += solver->needs[other->needs].candidate_count;
        if (lack_of(bin, unit, other) == DIMENSIONS) {
            continue;
        }
        int32_t target =
            displaces ? NOWHERE : solver_find_bin(solver, other, &other->amount, number);
        if (!displaces && target == NOWHERE) {
            continue;
        }
        unit_take(solver, other);
        if (!displaces) {
            unit_put(solver, other, target);
        }
        solver->left[left++] = (uint32_t)(other - solver->units);
    }
    bool has_cleared = has_room(bin, unit);
    for (uint32_t i = left; i-- > 0;) { /* those that need not have left come back */
        other = &solver->units[solver->left[i]];
        struct amount both = unit->amount, free = bin_free(bin);
        for (int j = 0; j < DIMENSIONS; j++) {
            both.of[j] += other->amount.of[j];
        }
        bool returns = !has_cleared || amount_fits(&both, &free);
        if (returns && !PLACEMENT_MUTANT(DISPLACES_IN_VAIN)) {
            bring_back(solver, other, number);
        } else if (displaces) {
            other->is_displaced = true;
            if (!PLACEMENT_MUTANT(DISPLACED_LOST)) {
                unit_queue_push(solver, &solver->queue, other);
            }
        }
    }
    solver->freed = has_cleared ? solver->freed : freed; /* all is as it was */
    return has_cleared;
}

/* Below this branch of a tree, where the least important units are first. */
static int32_t clear_below(struct solver *solver, const struct kind *kind, size_t at,
                           const struct unit *unit)
{
    if (kind->tree[at].priority >= unit->priority + PLACEMENT_MUTANT(DISPLACES_EQUALS)) {
        return NOWHERE;
    }
    if (at < kind->leaves) {
        size_t second = kind->tree[2 * at + 1].priority < kind->tree[2 * at].priority;
        int32_t bin = clear_below(solver, kind, 2 * at + second, unit);
        return bin != NOWHERE ? bin : clear_below(solver, kind, 2 * at + !second, unit);
    }
    int32_t bin = kind->bins[at - kind->leaves];
    return clear_bin(solver, bin, unit, true) ? bin : NOWHERE;
}

static int32_t clear_any(struct solver *solver, const struct kind *kind, const struct unit *unit)
{
    for (uint32_t i = 0; i < kind->bin_count; i++) {
        if (clear_bin(solver, kind->bins[i], unit, false)) {
            return kind->bins[i];
        }
    }
    return NOWHERE;
}

static int32_t bin_made_free(struct solver *solver, const struct unit *unit, bool displaces)
{
    struct needs *needs = &solver->needs[unit->needs];
    struct failure *failure = displaces ? &needs->no_displacing : &needs->no_moving;
    const struct kind *kind;
    int32_t bin = NOWHERE;

    if (unit->is_pinned || solver->looks >= LOOKS_MAX || failure_holds(solver, failure, unit) ||
        (!displaces && !amount_fits(&unit->amount, &solver->free))) {
        return NOWHERE;
    }
    for (uint32_t at = 0; bin == NOWHERE && (kind = needs_next_kind(solver, needs, &at));) {
        bin = displaces ? clear_below(solver, kind, 1, unit) : clear_any(solver, kind, unit);
    }
    if (bin == NOWHERE) {
        failure_note(solver, failure, unit);
    }
    return bin;
}

/* ---- Placing --------------------------------------------------------------------------------- */

/* Puts a waiting unit there; the items of a group that have bins leave them. */
static void gather(struct solver *solver, struct unit *unit, int32_t bin)
{
    for (int32_t i = unit->first_item; unit->is_scattered && i != NOWHERE;
         i = solver->next_item[i]) {
        struct amount amount = item_amount(solver, i);
        if (solver->kept[i] != NOWHERE) {
            bin_discharge(solver, solver->kept[i], &amount, 1);
        }
    }
    unit->is_scattered = false;
    unit->is_displaced = false;
    unit_put(solver, unit, bin);
}

static bool may_displace(const struct solver *solver)
{
    return (solver->problem->strategy == PLACEMENT_PRIORITY &&
            !PLACEMENT_MUTANT(DISPLACES_NEVER)) ||
           PLACEMENT_MUTANT(DISPLACES_UNASKED);
}

/* Whether more may be possible now: units that had bins have left them. */
static bool place_one(struct solver *solver, struct unit *unit)
{
    int32_t bin = bin_with_room(solver, unit, false);
    bool has_moved = false;

    if (bin == NOWHERE) {
        bin = bin_made_free(solver, unit, false);
        has_moved = bin != NOWHERE;
    }
    if (bin == NOWHERE && may_overfill(solver)) {
        bin = bin_with_room(solver, unit, true);
    }
    if (bin == NOWHERE && may_displace(solver)) {
        bin = bin_made_free(solver, unit, true);
        has_moved = bin != NOWHERE;
    }
    if (bin != NOWHERE) {
        has_moved |= unit->is_scattered;
        gather(solver, unit, bin);
    } else {
        solver->waiting[solver->waiting_count++] = (uint32_t)(unit - solver->units);
    }
    return has_moved;
}

bool solver_place_waiting(struct solver *solver)
{
    uint32_t waiting = solver->waiting_count;
    bool has_moved = false;
    struct unit *unit;

    while (solver->waiting_count > 0) {
        unit_queue_push(solver, &solver->queue,
                        &solver->units[solver->waiting[--solver->waiting_count]]);
    }
    solver->looks = 0;
    solver->freed = ++solver->stamp; /* no failure holds any more */
    while ((unit = unit_queue_pop(solver, &solver->queue))) {
        has_moved |= place_one(solver, unit);
    }
    /* Room is sought in a simple way: with other units around it may be found. */
    return has_moved || (solver->waiting_count > 0 && solver->waiting_count < waiting);
}

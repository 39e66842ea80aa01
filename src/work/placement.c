/* The steps: place what waits, empty draining nodes, relieve overfilled ones, balance; again while
 * one of them made room for what still waits. Each step leaves alone what is right already, so the
 * answer to an answer is the same. */
#include "base/error.h"
#include "base/invariant.h"
#include "work/placement_int.h"
#include "work/placement_mutants.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS_MAX = 8 };

#ifdef BATON_MUTANTS
_Thread_local enum placement_mutant placement_mutant;
#endif

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

/* ---- The answer ------------------------------------------------------------------------------ */

static enum placement_reason reason_of(const struct solver *solver, const struct unit *unit)
{
    const struct needs *needs = &solver->needs[unit->needs];
    const struct kind *kind;

    if (solver->takers == 0) {
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
    for (uint32_t at = 0; (kind = needs_next_kind(solver, needs, &at));) {
        for (uint32_t i = 0; i < kind->bin_count; i++) {
            const struct amount *size = &solver->bins[kind->bins[i]].size;
            if (unit->amount.of[MEMORY] > size->of[MEMORY] ||
                unit->amount.of[GPUS] > size->of[GPUS]) {
                continue;
            }
            if (solver->problem->overfills || unit->amount.of[WEIGHT] <= size->of[WEIGHT]) {
                return PLACEMENT_NO_ROOM;
            }
            reason = PLACEMENT_ITEM_TOO_LARGE;
        }
    }
    return unit->items > 1 ? PLACEMENT_GROUP_TOO_LARGE : reason;
}

static void answer_unit(struct solver *solver, const struct unit *unit,
                        struct placement_place *places)
{
    enum placement_reason reason =
        unit->bin == NOWHERE ? reason_of(solver, unit) : PLACEMENT_PLACED;

    for (int32_t i = unit->first_item; i != NOWHERE; i = solver->next_item[i]) {
        int32_t node = unit->bin != NOWHERE ? unit->bin
                       : unit->is_scattered ? solver->kept[i]
                                            : NOWHERE;
        bool overfills = node != NOWHERE &&
                         solver->bins[node].used.of[WEIGHT] > solver->bins[node].size.of[WEIGHT];
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
    struct solver *solver = answer.places ? solver_new(problem) : NULL;

    INVARIANT(problem->node_count <= INT32_MAX);
    INVARIANT(problem->item_count <= INT32_MAX);
    if (!solver) {
        free(answer.places);
        return BATON_ENOMEM;
    }
    units_make(solver);
    trees_build(solver);
    bool has_moved = true;
    for (int round = 0; has_moved && round < (PLACEMENT_MUTANT(ONE_ROUND) ? 1 : ROUNDS_MAX);
         round++) {
        has_moved = solver_place_waiting(solver);
        has_moved |= solver_drain(solver);
        has_moved |= solver_relieve(solver);
        has_moved |= solver_balance(solver);
    }
    for (uint32_t i = 0; i < solver->unit_count; i++) {
        answer_unit(solver, &solver->units[i], answer.places);
    }
    count(problem, &answer);
    answer.bytes = solver->bytes;
    free(solver);
    *ret = answer;
    return BATON_OK;
}

void placement_answer_fini(struct placement_answer *answer)
{
    free(answer->places);
    *answer = (struct placement_answer){0};
}

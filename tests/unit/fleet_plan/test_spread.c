/* Owners of workers: even, with few changes, the same for all. Processes come and go at random;
 * each planted bug is caught there. */
#include "cmocka_all.h"
#include "fleet/plan/mutants.h"
#include "fleet/plan/spread.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { PROCESSES = 6, WORKERS = 40, RUNS = 400, STEPS = 30 };

/* Processes by their own numbers; a problem has those that live. */
struct group {
    uint64_t random;
    bool lives[PROCESSES];
    int32_t first[WORKERS], second[WORKERS], owner[WORKERS];
    size_t workers;
};

static uint64_t draw(struct group *group, uint64_t below)
{
    group->random ^= group->random << 13;
    group->random ^= group->random >> 7;
    group->random ^= group->random << 17;
    return group->random % below;
}

/* Numbers of those that live; SPREAD_NONE: it is dead. */
static size_t number_living(const struct group *group, int32_t *ret)
{
    size_t count = 0;

    for (size_t i = 0; i < PROCESSES; i++) {
        ret[i] = group->lives[i] ? (int32_t)count++ : SPREAD_NONE;
    }
    return count;
}

static void translate(const int32_t *from, size_t count, const int32_t *numbers, int32_t *ret)
{
    for (size_t i = 0; i < count; i++) {
        ret[i] = from[i] != SPREAD_NONE ? numbers[from[i]] : SPREAD_NONE;
    }
}

static size_t count_of(const int32_t *list, size_t count, int32_t process)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++) {
        found += list[i] == process;
    }
    return found;
}

static bool is_even(const size_t *counts, size_t count, size_t except)
{
    size_t least = SIZE_MAX, most = 0;

    for (size_t i = 0; i < count; i++) {
        if (i != except) {
            least = counts[i] < least ? counts[i] : least;
            most = counts[i] > most ? counts[i] : most;
        }
    }
    return most <= least + 1;
}

static const char *fault_of_evenness(size_t processes, size_t workers, const int32_t *first,
                                     const int32_t *second)
{
    size_t counts[PROCESSES];

    for (size_t i = 0; i < processes; i++) {
        counts[i] = count_of(first, workers, (int32_t)i);
    }
    if (processes > 0 && !is_even(counts, processes, SIZE_MAX)) {
        return "the firsts are not even";
    }
    for (size_t i = 0; processes > 1 && i < processes; i++) {
        memset(counts, 0, sizeof(counts));
        for (size_t j = 0; j < workers; j++) {
            if (first[j] == (int32_t)i) {
                if (second[j] == SPREAD_NONE || second[j] == first[j]) {
                    return "a worker has no second";
                }
                counts[second[j]]++;
            }
        }
        if (!is_even(counts, processes, i)) {
            return "the seconds of a process are not even";
        }
    }
    return NULL;
}

/* Each process keeps as many as an even share allows; so fewer changes are not possible. */
static const char *fault_of_changes(const struct spread_problem *problem, const int32_t *first)
{
    size_t kept = 0, could = 0, rest, above = 0;

    if (problem->process_count == 0) {
        return NULL;
    }
    rest = problem->worker_count % problem->process_count;
    for (size_t i = 0; i < problem->process_count; i++) {
        size_t each = problem->worker_count / problem->process_count;
        size_t had = count_of(problem->first, problem->worker_count, (int32_t)i);
        could += had < each ? had : each;
        above += had > each;
    }
    could += above < rest ? above : rest;
    for (size_t i = 0; i < problem->worker_count; i++) {
        kept += first[i] == problem->first[i];
    }
    return kept < could ? "more workers change their first than need to" : NULL;
}

/* A process that must give some away does not give one that it owns while it keeps one that it does
 * not.
 */
static const char *fault_of_owners(const struct spread_problem *problem, const int32_t *first)
{
    for (size_t i = 0; i < problem->process_count; i++) {
        bool gives_own = false, keeps_other = false;
        for (size_t j = 0; j < problem->worker_count; j++) {
            if (problem->first[j] == (int32_t)i) {
                gives_own |= first[j] != (int32_t)i && problem->owner[j] == (int32_t)i;
                keeps_other |= first[j] == (int32_t)i && problem->owner[j] != (int32_t)i;
            }
        }
        if (gives_own && keeps_other) {
            return "a process gives away what it owns and keeps what it does not";
        }
    }
    return NULL;
}

static void adopt(struct group *group, const int32_t *numbers, const int32_t *first,
                  const int32_t *second)
{
    for (size_t i = 0; i < group->workers; i++) {
        group->first[i] = group->second[i] = SPREAD_NONE;
        for (int32_t j = 0; j < PROCESSES; j++) {
            if (group->lives[j] && numbers[j] == first[i]) {
                group->first[i] = j;
            }
            if (group->lives[j] && numbers[j] == second[i]) {
                group->second[i] = j;
            }
        }
        if (group->owner[i] == SPREAD_NONE || draw(group, 2) == 0) {
            group->owner[i] = group->first[i];
        }
    }
}

static const char *fault_of_group(struct group *group)
{
    int32_t numbers[PROCESSES], was[3][WORKERS], first[WORKERS], second[WORKERS], again[2][WORKERS];
    struct spread_problem problem = {
        .worker_count = group->workers, .first = was[0], .second = was[1], .owner = was[2]};
    const char *fault;

    problem.process_count = number_living(group, numbers);
    translate(group->first, group->workers, numbers, was[0]);
    translate(group->second, group->workers, numbers, was[1]);
    translate(group->owner, group->workers, numbers, was[2]);
    assert_int_equal(spread_solve(&problem, first, second), 0);
    fault = fault_of_evenness(problem.process_count, group->workers, first, second);
    fault = fault ? fault : fault_of_changes(&problem, first);
    fault = fault ? fault : fault_of_owners(&problem, first);
    problem.first = first;
    problem.second = second;
    assert_int_equal(spread_solve(&problem, again[0], again[1]), 0);
    if (!fault && (memcmp(again[0], first, group->workers * sizeof(*first)) != 0 ||
                   memcmp(again[1], second, group->workers * sizeof(*second)) != 0)) {
        fault = "the answer to an answer is another one";
    }
    adopt(group, numbers, first, second);
    return fault;
}

static void happen(struct group *group)
{
    size_t process = draw(group, PROCESSES);

    group->lives[process] = !group->lives[process];
    for (size_t i = 0; i < WORKERS; i++) {
        if (group->owner[i] != SPREAD_NONE && !group->lives[group->owner[i]]) {
            group->owner[i] = draw(group, 2) == 0 ? group->second[i] : SPREAD_NONE;
        }
    }
    if (draw(group, 4) == 0 && group->workers < WORKERS) {
        group->first[group->workers] = group->second[group->workers] =
            group->owner[group->workers] = SPREAD_NONE;
        group->workers++;
    }
}

static const char *fault_of_run(uint64_t seed)
{
    struct group group = {.random = (seed + 1) * 0x9e3779b97f4a7c15u};
    const char *fault = NULL;

    group.workers = draw(&group, WORKERS);
    memset(group.first, 0xff, sizeof(group.first));
    memset(group.second, 0xff, sizeof(group.second));
    memset(group.owner, 0xff, sizeof(group.owner));
    for (int i = 0; !fault && i < STEPS; i++) {
        happen(&group);
        fault = fault_of_group(&group);
    }
    return fault;
}

static void owners_are_even_and_change_seldom(void **state)
{
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        const char *fault = fault_of_run(seed);
        if (fault) {
            fail_msg("run %llu: %s", (unsigned long long)seed, fault);
        }
    }
}

static void each_planted_bug_is_caught(void **state)
{
    for (int i = PLAN_MUTANT_SECOND_UNPAIRED; i < PLAN_MUTANT_COUNT; i++) {
        const char *fault = NULL;
        plan_mutant = (enum plan_mutant)i;
        for (uint64_t seed = 0; !fault && seed < RUNS; seed++) {
            fault = fault_of_run(seed);
        }
        if (!fault) {
            fail_msg("planted bug %d is not caught", i);
        }
    }
    plan_mutant = PLAN_MUTANT_NONE;
}

/* Of three, the second takes over what it was second for, and nothing of others changes. */
static void the_second_of_a_dead_process_becomes_the_first(void **state)
{
    const int32_t first[] = {SPREAD_NONE, SPREAD_NONE, 0, 0, 1, 1}, second[] = {0, 1, 1, 0, 0, 0};
    const int32_t owner[] = {SPREAD_NONE, SPREAD_NONE, 0, 0, 1, 1};
    const struct spread_problem problem = {2, 6, first, second, owner};
    int32_t next_first[6], next_second[6];

    assert_int_equal(spread_solve(&problem, next_first, next_second), 0);
    assert_int_equal(next_first[0], 0);
    assert_int_equal(next_first[1], 1);
    assert_memory_equal(next_first + 2, first + 2, 4 * sizeof(*first));
    for (int i = 0; i < 6; i++) {
        assert_int_equal(next_second[i], 1 - next_first[i]);
    }
}

static void without_processes_there_are_no_owners(void **state)
{
    const int32_t none[] = {SPREAD_NONE, SPREAD_NONE};
    const struct spread_problem nobody = {0, 2, none, none, none}, one = {1, 2, none, none, none};
    int32_t first[2], second[2];

    assert_int_equal(spread_solve(&nobody, first, second), 0);
    assert_int_equal(first[1], SPREAD_NONE);
    assert_int_equal(spread_solve(&one, first, second), 0);
    assert_int_equal(first[1], 0);
    assert_int_equal(second[1], SPREAD_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(owners_are_even_and_change_seldom),
        cmocka_unit_test(each_planted_bug_is_caught),
        cmocka_unit_test(the_second_of_a_dead_process_becomes_the_first),
        cmocka_unit_test(without_processes_there_are_no_owners),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

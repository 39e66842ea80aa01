/* Random problems: what holds for every answer, and that an answer is its own answer. */
#include "checks.h"
#include "cmocka_all.h"
#include "lib/chance.h"
#include "random_problem.h"

#include <string.h>

enum { PROBLEMS = OF_CHANCE(40000) };

static void solve(const struct random_problem *random, struct placement_answer *ret)
{
    assert_int_equal(placement_solve(&random->problem, ret), 0);
}

static void every_answer_keeps_the_rules(void **state)
{
    struct random_problem random;
    struct placement_answer answer;

    for (uint64_t seed = 0; seed < PROBLEMS; seed++) {
        random_problem_make(&random, seed, RANDOM_NODES_MAX, RANDOM_ITEMS_MAX);
        solve(&random, &answer);
        const char *fault = checks_fault(&random.problem, &answer);
        if (fault) {
            fail_msg("problem %llu: %s", (unsigned long long)seed, fault);
        }
        placement_answer_fini(&answer);
    }
}

static void the_same_problem_has_the_same_answer(void **state)
{
    struct random_problem random;
    struct placement_answer answer, again;

    for (uint64_t seed = 0; seed < PROBLEMS / 4; seed++) {
        random_problem_make(&random, seed, RANDOM_NODES_MAX, RANDOM_ITEMS_MAX);
        solve(&random, &answer);
        solve(&random, &again);
        assert_memory_equal(answer.places, again.places,
                            (random.problem.item_count + 1) * sizeof(*answer.places));
        placement_answer_fini(&answer);
        placement_answer_fini(&again);
    }
}

static void the_answer_to_an_answer_moves_nothing(void **state)
{
    struct random_problem random;
    struct placement_answer answer, again;

    for (uint64_t seed = 0; seed < PROBLEMS; seed++) {
        random_problem_make(&random, seed, RANDOM_NODES_MAX, RANDOM_ITEMS_MAX);
        solve(&random, &answer);
        random_problem_adopt(&random, &answer);
        solve(&random, &again);
        if (again.started + again.moved + again.stopped > 0) {
            fail_msg("problem %llu: the answer to its answer starts %zu, moves %zu, stops %zu",
                     (unsigned long long)seed, again.started, again.moved, again.stopped);
        }
        placement_answer_fini(&answer);
        placement_answer_fini(&again);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_answer_keeps_the_rules),
        cmocka_unit_test(the_same_problem_has_the_same_answer),
        cmocka_unit_test(the_answer_to_an_answer_moves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

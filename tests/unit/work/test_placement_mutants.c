/* Each planted bug is caught by what holds for every answer, or because the answer to the answer
 * moves something. The same problems show nothing without a bug (test_placement_random.c). */
#include "checks.h"
#include "cmocka_all.h"
#include "random_problem.h"
#include "work/placement_mutants.h"

enum { PROBLEMS = 40000 };

static const char *const texts[] = {
#define TEXT_OF_MUTANT(name, text) [PLACEMENT_MUTANT_##name] = (text),
    PLACEMENT_MUTANTS(TEXT_OF_MUTANT)
#undef TEXT_OF_MUTANT
};

static const char *fault_of(struct random_problem *random)
{
    struct placement_answer answer, again;
    const char *fault;

    assert_int_equal(placement_solve(&random->problem, &answer), 0);
    fault = checks_fault(&random->problem, &answer);
    random_problem_adopt(random, &answer);
    assert_int_equal(placement_solve(&random->problem, &again), 0);
    if (!fault && again.started + again.moved + again.stopped > 0) {
        fault = "the answer to the answer moves something";
    }
    placement_answer_fini(&answer);
    placement_answer_fini(&again);
    return fault;
}

static void each_planted_bug_is_caught(void **state)
{
    struct random_problem random;

    for (int i = PLACEMENT_MUTANT_NONE + 1; i < PLACEMENT_MUTANT_COUNT; i++) {
        const char *fault = NULL;
        uint64_t seed = 0;
        for (; !fault && seed < PROBLEMS; seed++) {
            placement_mutant = PLACEMENT_MUTANT_NONE; /* making a problem solves one */
            random_problem_make(&random, seed, RANDOM_NODES_MAX, RANDOM_ITEMS_MAX);
            placement_mutant = (enum placement_mutant)i;
            fault = fault_of(&random);
        }
        if (!fault) {
            fail_msg("not caught: %s", texts[i]);
        }
        print_message("%s: problem %llu: %s\n", texts[i], (unsigned long long)(seed - 1), fault);
    }
    placement_mutant = PLACEMENT_MUTANT_NONE;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_planted_bug_is_caught),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

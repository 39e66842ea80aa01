/* Each planted bug of a plan is caught in a world at random. The same worlds show nothing without a
 * bug (test_plan_random.c). Those of a spread are in test_spread.c. */
#include "cmocka_all.h"
#include "fleet/plan/mutants.h"
#include "world.h"

enum { WORLDS = 6000, STEPS = 40 };

static const char *const texts[] = {
#define TEXT_OF_MUTANT(name, text) [PLAN_MUTANT_##name] = (text),
    PLAN_MUTANTS(TEXT_OF_MUTANT)
#undef TEXT_OF_MUTANT
};

static const char *fault_of(struct world *world, uint64_t seed)
{
    const char *fault = NULL;
    bool is_changed;

    world_make(world, seed);
    for (int i = 0; !fault && i < STEPS; i++) {
        world_step(world);
        fault = i % 10 == 9 ? world_rest(world)
                            : world_plan(world, world_draw(world, 8) == 0,
                                         world_draw(world, 6) == 0, &is_changed);
    }
    return fault;
}

static void each_planted_bug_is_caught(void **state)
{
    struct world world;

    for (int i = PLAN_MUTANT_NONE + 1; i < PLAN_MUTANT_SECOND_UNPAIRED; i++) {
        const char *fault = NULL;
        uint64_t seed = 0;
        plan_mutant = (enum plan_mutant)i;
        for (; !fault && seed < WORLDS; seed++) {
            fault = fault_of(&world, seed);
        }
        if (!fault) {
            fail_msg("not caught: %s", texts[i]);
        }
        print_message("%s: world %llu: %s\n", texts[i], (unsigned long long)(seed - 1), fault);
    }
    plan_mutant = PLAN_MUTANT_NONE;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_planted_bug_is_caught),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

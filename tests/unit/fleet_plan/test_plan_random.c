/* Worlds at random: what holds for every answer, at every step and at rest. */
#include "cmocka_all.h"
#include "lib/chance.h"
#include "world.h"

enum { WORLDS = OF_CHANCE(3000), STEPS = 40 };

static void every_answer_keeps_the_rules(void **state)
{
    struct world world;

    for (uint64_t seed = 0; seed < WORLDS; seed++) {
        const char *fault = NULL;
        bool is_changed;
        world_make(&world, seed);
        for (int i = 0; !fault && i < STEPS; i++) {
            world_step(&world);
            if (world_draw(&world, 10) == 0) {
                world_forget(&world);
            }
            fault = world_plan(&world, world_draw(&world, 8) == 0, world_draw(&world, 6) == 0,
                               &is_changed);
        }
        if (fault) {
            fail_msg("world %llu: %s", (unsigned long long)seed, fault);
        }
    }
}

static void a_world_in_which_nothing_happens_comes_to_rest(void **state)
{
    struct world world;

    for (uint64_t seed = 0; seed < WORLDS; seed++) {
        const char *fault = NULL;
        bool is_changed;
        world_make(&world, seed);
        for (int i = 0; !fault && i < 4; i++) {
            for (int j = 0; !fault && j < 5; j++) {
                world_step(&world);
                fault = world_plan(&world, false, false, &is_changed);
            }
            fault = fault ? fault : world_rest(&world);
        }
        if (fault) {
            fail_msg("world %llu: %s", (unsigned long long)seed, fault);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_answer_keeps_the_rules),
        cmocka_unit_test(a_world_in_which_nothing_happens_comes_to_rest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

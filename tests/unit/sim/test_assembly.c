/* The simulator of sessions: it replays exactly, and its worlds are full of events. */
#include "cmocka_all.h"
#include "lib/chance.h"
#include "sim/sessions/play.h"

enum { FEW_SEEDS = OF_CHANCE(200) };

static struct result play(void *world, uint64_t seed, bool keeps_trace)
{
    const struct options options = {.seed = seed, .keeps_trace = keeps_trace};
    struct result result;

    sessions_game.play(world, &options, &result);
    return result;
}

static void the_same_seed_plays_the_same_assembly(void **state)
{
    void *one = sessions_game.new_world();
    void *other = sessions_game.new_world();

    assert_non_null(one);
    assert_non_null(other);
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct result first = play(one, seed, false);
        struct result traced;
        (void)play(other, 51 - seed, true);
        traced = play(other, seed, true);
        assert_true(first.hash == traced.hash);
        assert_int_equal(first.events, traced.events);
    }
    sessions_game.free_world(one);
    sessions_game.free_world(other);
}

static void assemblies_have_leaderships_crashes_and_several_leaders_of_the_log(void **state)
{
    void *world = sessions_game.new_world();
    struct result sum = {0};

    for (uint64_t seed = 1; seed <= FEW_SEEDS; seed++) {
        struct result result = play(world, seed, false);
        assert_int_equal(result.outcome, OUTCOME_HELD);
        for (size_t i = 0; i < SIM_COUNTS_MAX; i++) {
            sum.counts[i] += result.counts[i];
        }
    }
    assert_true(sum.counts[ASSEMBLY_COUNT_GRANTS] > 5 * FEW_SEEDS);
    assert_true(sum.counts[ASSEMBLY_COUNT_ENTRIES] > 50 * FEW_SEEDS);
    assert_true(sum.counts[ASSEMBLY_COUNT_CRASHES] > FEW_SEEDS);
    assert_true(sum.counts[ASSEMBLY_COUNT_TERMS] > 2 * FEW_SEEDS);
    sessions_game.free_world(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_plays_the_same_assembly),
        cmocka_unit_test(assemblies_have_leaderships_crashes_and_several_leaders_of_the_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

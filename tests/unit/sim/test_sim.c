/* The simulator itself: it replays exactly, holds where it should, and can fail. */
#include "cmocka_all.h"
#include "sim/play.h"

#include <string.h>

enum {
    BROKEN_DRIFT_SEEDS = 500,
    FEW_SEEDS = 200,
};

static struct result play(struct world *world, uint64_t seed, bool keeps_trace, bool breaks_drift)
{
    struct options options = {
        .seed = seed, .keeps_trace = keeps_trace, .breaks_drift = breaks_drift};
    struct result result;
    world_run(world, &options, &result);
    return result;
}

static void the_same_seed_plays_the_same_run(void **state)
{
    struct world *one = world_new();
    struct world *other = world_new();

    assert_non_null(one);
    assert_non_null(other);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct result first = play(one, seed, false, false);
        struct result again = play(other, 21 - seed, true, false);
        struct result traced = play(other, seed, true, false);
        (void)again; /* a world that has played others plays this one no differently */
        assert_true(first.hash == traced.hash);
        assert_int_equal(first.events, traced.events);
    }
    world_free(one);
    world_free(other);
}

static void different_seeds_play_different_runs(void **state)
{
    struct world *world = world_new();
    struct result first = play(world, 1, false, false);
    struct result second = play(world, 2, false, false);

    assert_true(first.hash != second.hash);
    world_free(world);
}

static void runs_elect_commit_crash_and_prove(void **state)
{
    struct world *world = world_new();
    struct result sum = {0};

    for (uint64_t seed = 1; seed <= FEW_SEEDS; seed++) {
        struct result result = play(world, seed, false, false);
        assert_int_equal(result.outcome, OUTCOME_HELD);
        sum.counts[COUNT_ACQUIRED] += result.counts[COUNT_ACQUIRED];
        sum.counts[COUNT_COMMITTED] += result.counts[COUNT_COMMITTED];
        sum.counts[COUNT_CRASHES] += result.counts[COUNT_CRASHES];
        sum.counts[COUNT_PROOFS] += result.counts[COUNT_PROOFS];
    }
    assert_true(sum.counts[COUNT_ACQUIRED] > FEW_SEEDS);
    assert_true(sum.counts[COUNT_COMMITTED] > FEW_SEEDS);
    assert_true(sum.counts[COUNT_CRASHES] > FEW_SEEDS);
    assert_true(sum.counts[COUNT_PROOFS] > FEW_SEEDS);
    world_free(world);
}

static void clocks_beyond_their_bound_give_two_leaders(void **state)
{
    struct world *world = world_new();
    bool found = false;

    for (uint64_t seed = 1; seed <= BROKEN_DRIFT_SEEDS && !found; seed++) {
        struct result result = play(world, seed, false, true);
        found = strcmp(result.check, "two-leaders") == 0;
    }
    assert_true(found);
    world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_plays_the_same_run),
        cmocka_unit_test(different_seeds_play_different_runs),
        cmocka_unit_test(runs_elect_commit_crash_and_prove),
        cmocka_unit_test(clocks_beyond_their_bound_give_two_leaders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The simulator of the lease core: it replays exactly, holds where it should, and can fail. */
#include "cmocka_all.h"
#include "sim/lease/play.h"

#include <string.h>

enum {
    BROKEN_DRIFT_SEEDS = 500,
    FEW_SEEDS = 300,
};

static struct result play(struct contest *contest, uint64_t seed, bool keeps_trace,
                          bool breaks_drift)
{
    struct options options = {
        .seed = seed, .keeps_trace = keeps_trace, .breaks_drift = breaks_drift};
    struct result result;
    contest_run(contest, &options, &result);
    return result;
}

static void the_same_seed_plays_the_same_contest(void **state)
{
    struct contest *one = contest_new();
    struct contest *other = contest_new();

    assert_non_null(one);
    assert_non_null(other);
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct result first = play(one, seed, false, false);
        struct result again = play(other, 51 - seed, true, false);
        struct result traced = play(other, seed, true, false);
        (void)again; /* one that has played others plays this one no differently */
        assert_true(first.hash == traced.hash);
        assert_int_equal(first.events, traced.events);
    }
    contest_free(one);
    contest_free(other);
}

static void different_seeds_play_different_contests(void **state)
{
    struct contest *contest = contest_new();
    struct result first = play(contest, 1, false, false);
    struct result second = play(contest, 2, false, false);

    assert_true(first.hash != second.hash);
    contest_free(contest);
}

static void contests_have_leaders_crashes_and_losses(void **state)
{
    struct contest *contest = contest_new();
    struct result sum = {0};

    for (uint64_t seed = 1; seed <= FEW_SEEDS; seed++) {
        struct result result = play(contest, seed, false, false);
        assert_int_equal(result.outcome, OUTCOME_HELD);
        for (size_t i = 0; i < SIM_COUNTS_MAX; i++) {
            sum.counts[i] += result.counts[i];
        }
    }
    assert_true(sum.counts[CONTEST_COUNT_ACQUIRED] > FEW_SEEDS);
    assert_true(sum.counts[CONTEST_COUNT_SERVED] > FEW_SEEDS);
    assert_true(sum.counts[CONTEST_COUNT_CRASHES] > FEW_SEEDS);
    assert_true(sum.counts[CONTEST_COUNT_LOSSES] > FEW_SEEDS);
    contest_free(contest);
}

static void clocks_beyond_their_bound_give_two_leaders(void **state)
{
    struct contest *contest = contest_new();
    bool found = false;

    for (uint64_t seed = 1; seed <= BROKEN_DRIFT_SEEDS && !found; seed++) {
        struct result result = play(contest, seed, false, true);
        found = strcmp(result.check, "two-leaders") == 0;
    }
    assert_true(found);
    contest_free(contest);
}

/* The data of a server that was restarted with an old copy calls a lock ours that another has. */
static void a_planted_bug_is_found_and_gone_again(void **state)
{
    struct contest *contest = contest_new();
    struct result result = {.outcome = OUTCOME_HELD};
    uint64_t seed = 0;

    contest_mutant = CONTEST_MUTANT_OWN_LOCK_UNQUESTIONED;
    while (result.outcome == OUTCOME_HELD && seed < 20000) {
        result = play(contest, ++seed, false, false);
    }
    contest_mutant = CONTEST_MUTANT_NONE;
    assert_string_equal(result.check, "two-leaders");
    assert_int_equal(play(contest, seed, false, false).outcome, OUTCOME_HELD);
    contest_free(contest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_plays_the_same_contest),
        cmocka_unit_test(different_seeds_play_different_contests),
        cmocka_unit_test(contests_have_leaders_crashes_and_losses),
        cmocka_unit_test(clocks_beyond_their_bound_give_two_leaders),
        cmocka_unit_test(a_planted_bug_is_found_and_gone_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

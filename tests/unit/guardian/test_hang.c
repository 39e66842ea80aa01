/* When a leader counts as hung: the rule by itself, in a small world of milliseconds, and planted
 * bugs that the same world must show. */
#include "cmocka_all.h"
#include "guardian/hang.h"
#include "guardian/mutants.h"

#include <stdlib.h>

enum { BOUND_MS = 80, BEAT_MS = 20, RUN_MS = 5000, WORLDS = 300 };

/* ---- The world ------------------------------------------------------------------------------- */

struct world {
    struct hang hang;
    unsigned seed;
    int now;            /* in ms */
    int beat;           /* of the leader's loop, the latest */
    int leader_frozen;  /* until then */
    bool is_starved;    /* that is why it is frozen */
    int watcher_frozen; /* the same */
    int dies;           /* at this moment the kill takes effect; 0: it was not killed */
    int killed;         /* when; 0: never */
    bool is_false_certificate;
};

static int choose(struct world *world, int limit)
{
    world->seed = world->seed * 1103515245 + 12345;
    return (int)(world->seed / 65536 % (unsigned)limit);
}

static instant at_ms(int ms)
{
    return (instant){(int64_t)ms * 1000000};
}

static bool is_dead(const struct world *world)
{
    return world->dies > 0 && world->now >= world->dies;
}

static void watch(struct world *world)
{
    const struct hang_look look = {.now = at_ms(world->now),
                                   .beat = at_ms(world->beat),
                                   .lease = INSTANT_NEVER,
                                   .is_dead = is_dead(world),
                                   .is_starved =
                                       world->is_starved && world->now < world->leader_frozen};
    enum hang_verdict verdict = hang_take(&world->hang, &look);

    if (verdict == HANG_KILL) {
        world->killed = world->now;
        world->dies = world->now + 1 + choose(world, 50); /* in the kernel it takes a while */
    }
    world->is_false_certificate |= verdict == HANG_CERTIFY && !is_dead(world);
}

static void run_leader(struct world *world)
{
    if (world->now >= world->leader_frozen && !is_dead(world) &&
        world->now >= world->beat + BEAT_MS) {
        world->beat = world->now;
    }
}

/* After a kill each look may be an early one: any message wakes the watcher. */
static void run_watcher(struct world *world)
{
    if (world->now >= world->watcher_frozen &&
        (world->killed > 0 || world->hang.next.ns == INSTANT_NEVER.ns ||
         !instant_before(at_ms(world->now), world->hang.next))) {
        watch(world);
    }
}

/* Of two that go on in the same moment, either may be first. */
static void pass_one_ms(struct world *world)
{
    bool is_leader_first = choose(world, 2) == 0;

    world->now++;
    if (is_leader_first) {
        run_leader(world);
    }
    run_watcher(world);
    if (!is_leader_first) {
        run_leader(world);
    }
}

static void begin(struct world *world, unsigned seed)
{
    *world = (struct world){.seed = seed, .now = 1000, .beat = 1000};
    hang_init(&world->hang, SPAN_MS(BOUND_MS));
}

/* The leader and its watcher stop and go on together, as on a machine that is suspended or too
 * busy for both, and now and then the watcher alone. Returns how many worlds saw a kill. */
static int stop_both_at_random(void)
{
    int kills = 0;

    for (unsigned seed = 1; seed <= WORLDS; seed++) {
        struct world world;
        int next = 1100;
        begin(&world, seed);
        while (world.now < 1000 + RUN_MS) {
            if (world.now >= next) {
                int end = world.now + choose(&world, 4 * BOUND_MS);
                world.watcher_frozen = end;
                world.leader_frozen = choose(&world, 4) > 0 ? end : 0;
                next = end + BOUND_MS + choose(&world, 200);
            }
            pass_one_ms(&world);
        }
        kills += world.killed > 0;
    }
    return kills;
}

/* The leader stops for good. Returns how many worlds saw a certificate before its death. */
static int stop_the_leader(int *ret_slowest)
{
    int falses = 0;

    *ret_slowest = 0;
    for (unsigned seed = 1; seed <= WORLDS; seed++) {
        struct world world;
        int stop;
        begin(&world, seed);
        stop = 1100 + choose(&world, 300);
        while (world.now < 1000 + RUN_MS) {
            if (world.now == stop) {
                world.leader_frozen = RUN_MS * 10;
            }
            pass_one_ms(&world);
        }
        int late = world.killed > 0 ? world.killed - stop : RUN_MS;
        *ret_slowest = late > *ret_slowest ? late : *ret_slowest;
        falses += world.is_false_certificate;
    }
    return falses;
}

/* ---- The rule -------------------------------------------------------------------------------- */

static void a_leader_that_stops_is_killed_after_the_bound(void **state)
{
    int slowest;
    (void)stop_the_leader(&slowest);
    assert_in_range(slowest, BOUND_MS - BEAT_MS, BOUND_MS + BOUND_MS / 8);
}

static void its_death_is_certified_only_when_the_kernel_reports_it(void **state)
{
    int slowest;
    assert_int_equal(stop_the_leader(&slowest), 0);
    hang_mutant = HANG_MUTANT_CERTIFIES_UNPROVEN;
    assert_int_not_equal(stop_the_leader(&slowest), 0);
    hang_mutant = HANG_MUTANT_NONE;
}

static void who_was_stopped_together_with_its_watcher_is_not_killed(void **state)
{
    assert_int_equal(stop_both_at_random(), 0);
    hang_mutant = HANG_MUTANT_COUNTS_ASLEEP;
    assert_int_not_equal(stop_both_at_random(), 0);
    hang_mutant = HANG_MUTANT_NONE;
}

static void who_gets_no_processor_is_not_killed(void **state)
{
    struct world world;
    for (int round = 0; round < 2; round++) {
        hang_mutant = round == 0 ? HANG_MUTANT_NONE : HANG_MUTANT_KILLS_STARVED;
        begin(&world, 1);
        world.is_starved = true;
        world.leader_frozen = 1500;
        while (world.now < 1000 + RUN_MS) {
            pass_one_ms(&world);
        }
        assert_int_equal(world.killed > 0, round);
    }
    hang_mutant = HANG_MUTANT_NONE;
}

static void who_does_not_lead_is_not_killed(void **state)
{
    struct hang hang;
    hang_init(&hang, SPAN_MS(BOUND_MS));
    for (int ms = 1; ms < 1000; ms++) {
        struct hang_look look = {.now = at_ms(ms), .beat = at_ms(1)};
        assert_int_equal(hang_take(&hang, &look), HANG_WAIT);
        look.lease = at_ms(ms); /* over now */
        assert_int_equal(hang_take(&hang, &look), HANG_WAIT);
        assert_true(hang.next.ns == INSTANT_NEVER.ns);
    }
}

static void who_begins_to_lead_has_the_whole_bound(void **state)
{
    struct hang hang;
    struct hang_look look = {.now = at_ms(500), .beat = at_ms(1), .lease = INSTANT_NEVER};
    hang_init(&hang, SPAN_MS(BOUND_MS));
    assert_int_equal(hang_take(&hang, &look), HANG_WAIT);
    assert_true(hang.since.ns == look.now.ns);
}

static void without_a_bound_nobody_is_killed(void **state)
{
    struct hang hang;
    hang_init(&hang, SPAN_NS(0));
    for (int ms = 1; ms < 1000; ms++) {
        struct hang_look look = {.now = at_ms(ms), .lease = INSTANT_NEVER};
        assert_int_equal(hang_take(&hang, &look), HANG_WAIT);
    }
}

static void each_kill_doubles_the_bound_up_to_the_lease(void **state)
{
    assert_int_equal(hang_bound(SPAN_MS(200), 0, SPAN_S(5)).ns, SPAN_MS(200).ns);
    assert_int_equal(hang_bound(SPAN_MS(200), 3, SPAN_S(5)).ns, SPAN_MS(1600).ns);
    assert_int_equal(hang_bound(SPAN_MS(200), 4000000000U, SPAN_S(5)).ns, SPAN_S(5).ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leader_that_stops_is_killed_after_the_bound),
        cmocka_unit_test(its_death_is_certified_only_when_the_kernel_reports_it),
        cmocka_unit_test(who_was_stopped_together_with_its_watcher_is_not_killed),
        cmocka_unit_test(who_gets_no_processor_is_not_killed),
        cmocka_unit_test(who_does_not_lead_is_not_killed),
        cmocka_unit_test(who_begins_to_lead_has_the_whole_bound),
        cmocka_unit_test(without_a_bound_nobody_is_killed),
        cmocka_unit_test(each_kill_doubles_the_bound_up_to_the_lease),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

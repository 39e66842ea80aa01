/* Each node's own clock: never jumps, runs fast or slow by up to the profile's bound. The core
 * knows no wall clock, so a jump of one cannot have an effect, and there is none to model. */
#include "sim/world.h"

enum { PPM = 1000000 };

static int64_t draw_rate(struct world *world)
{
    int64_t bound = world->profile.drift_ppm;

    switch (world->profile.drift) {
    case SIM_DRIFT_NONE:
        return 0;
    case SIM_DRIFT_RANDOM:
        return random_between(&world->random, -bound, bound);
    case SIM_DRIFT_EXTREME:
        return random_chance(&world->random, 500000) ? bound : -bound;
    }
    return 0;
}

void clock_start(struct world *world, struct node *node)
{
    node->true_base = 0;
    node->local_base = random_between(&world->random, 0, SPAN_S(100000).ns);
    node->ppm = draw_rate(world);
}

instant clock_local(const struct node *node, int64_t at)
{
    int64_t passed = at - node->true_base;
    __int128 scaled = (__int128)passed * (PPM + node->ppm) / PPM;
    return (instant){node->local_base + (int64_t)scaled};
}

int64_t clock_true(const struct node *node, instant local)
{
    __int128 passed;
    int64_t at;

    if (local.ns == INT64_MAX) {
        return INT64_MAX;
    }
    if (local.ns <= node->local_base) {
        return node->true_base;
    }
    passed = (__int128)(local.ns - node->local_base) * PPM / (PPM + node->ppm);
    if (passed > INT64_MAX / 2) {
        return INT64_MAX;
    }
    at = node->true_base + (int64_t)passed;
    while (clock_local(node, at).ns < local.ns) {
        at++;
    }
    return at;
}

void clock_change_rate(struct world *world, struct node *node)
{
    node->local_base = clock_local(node, world->now).ns;
    node->true_base = world->now;
    node->ppm = draw_rate(world);
    trace_say(world, node->id, "clock runs at %+lld ppm", (long long)node->ppm);
    node->tick_at = INT64_MAX; /* the deadline is at another true instant now */
    queue_push(world, (struct event){.kind = EVENT_TICK,
                                     .node = node->id,
                                     .at = world->now,
                                     .life = node->incarnation});
    node->tick_at = world->now;
}

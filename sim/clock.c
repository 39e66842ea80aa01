/* Each node's own clock: it never jumps, and runs fast or slow by up to the profile's bound. The
 * core does not read the wall clock, so jumps of it are not modelled. */
#include "sim/clock.h"

#include "sim/queue.h"
#include "sim/trace.h"

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
    node->clock =
        (struct drift_clock){.local_base = random_between(&world->random, 0, SPAN_S(100000).ns)};
    node->clock.ppm = draw_rate(world);
}

instant clock_local(const struct node *node, int64_t at)
{
    return drift_local(&node->clock, at);
}

int64_t clock_true(const struct node *node, instant local)
{
    return drift_true(&node->clock, local);
}

void clock_change_rate(struct world *world, struct node *node)
{
    drift_set_rate(&node->clock, world->now, draw_rate(world));
    trace_say(world, node->id, "clock runs at %+lld ppm", (long long)node->clock.ppm);
    node->tick_at = INT64_MAX; /* the deadline is at another true instant now */
    queue_push(world, (struct event){.kind = EVENT_TICK,
                                     .node = node->id,
                                     .at = world->now,
                                     .life = node->incarnation});
    node->tick_at = world->now;
}

/* A process's guardian, where hangs are killed. The rule is that of src/guardian/hang.c.
 *
 *   leads ─▶ looks, eight times within the bound ─▶ HANG_KILL: the process takes no input any more
 *              │ late, or with the process asleep            │ some time later
 *              └ counts anew                                 ▼
 *                                                 it is dead: as any crash, and certified as one
 *
 * A process that was killed, and is not dead yet, counts as one that leads: another one may lead
 * only when the kernel has reported the death. */
#include "sim/watch.h"

#include "sim/clock.h"
#include "sim/proofs.h"
#include "sim/queue.h"
#include "sim/trace.h"
#include "sim/verdict.h"

void watch_begin(struct world *world, struct node *node)
{
    node->watch = (struct watch){.awake_since = world->now};
    hang_init(&node->watch.hang, world->profile.hang);
}

static void plan(struct world *world, struct node *node, int64_t at)
{
    node->watch.is_looking = true;
    queue_push(world, (struct event){.kind = EVENT_LOOK,
                                     .at = at > world->now ? at : world->now,
                                     .node = node->id,
                                     .number = node->incarnation});
}

void watch_follow(struct world *world, struct node *node)
{
    if (world->profile.hang.ns > 0 && node->lease.held && !node->watch.is_looking) {
        plan(world, node, world->now);
    }
}

void watch_stop(struct world *world, struct node *node)
{
    struct watch *watch = &node->watch;
    int64_t quarter = world->profile.hang.ns / 4;

    if (quarter == 0) {
        return;
    }
    watch->beat = clock_local(node, world->now);
    watch->stopped_at = world->now;
    if (random_chance(&world->aside, 500000)) {
        watch->asleep_until = node->paused_until + random_between(&world->aside, -quarter, quarter);
        watch->awake_since = watch->asleep_until;
        trace_say(world, node->id, "and so is its guardian");
    }
}

/* It was not silent for so long while its guardian was awake. */
static void check_kill(struct world *world, const struct node *node)
{
    const struct watch *watch = &node->watch;
    int64_t since = watch->stopped_at > watch->awake_since ? watch->stopped_at : watch->awake_since;

    if (!node->is_paused || world->now - since < world->profile.hang.ns / 4 * 3) {
        violated(world, "false-kill", "the guardian of node %llu kills it after %.3f ms of silence",
                 (unsigned long long)node->id,
                 node->is_paused ? (double)(world->now - since) / 1e6 : 0.0);
    }
}

/* The kernel ends a process at once, or after what it waits for. */
static void kill_node(struct world *world, struct node *node)
{
    bool is_slow = random_chance(&world->aside, 300000);
    int64_t most = is_slow ? world->profile.settings.lease.ns : world->profile.hang.ns / 8;

    check_kill(world, node);
    trace_say(world, node->id, "hangs, and its guardian kills it");
    node->is_paused = true;
    node->watch.has_killed = true;
    node->paused_until = world->now + random_between(&world->aside, 0, most);
    queue_push(world, (struct event){.kind = EVENT_KILLED,
                                     .at = node->paused_until,
                                     .node = node->id,
                                     .number = node->incarnation});
}

static struct hang_look look_at(const struct world *world, const struct node *node)
{
    struct hang_look look = {.now = clock_local(node, world->now)};

    look.beat = node->is_paused ? node->watch.beat : look.now;
    look.lease.ns = node->lease.held ? node->lease.end.ns : 0;
    return look;
}

static void look_again(struct world *world, struct node *node)
{
    int64_t eighth = world->profile.hang.ns / 8;
    instant next = node->watch.has_killed
                       ? instant_add(clock_local(node, world->now), SPAN_NS(eighth))
                       : node->watch.hang.next;
    int64_t late = random_chance(&world->aside, 100000) ? 4 * eighth : eighth / 4;

    if (next.ns != INSTANT_NEVER.ns) {
        plan(world, node,
             clock_true(node, next) +
                 (world->is_calm ? 0 : random_between(&world->aside, 0, late)));
    }
}

void watch_look(struct world *world, const struct event *event)
{
    struct node *node = &world->nodes[event->node];
    struct hang_look look;

    if (!node->is_up || event->number != node->incarnation) {
        return; /* its guardian has gone with it */
    }
    if (world->now < node->watch.asleep_until) {
        plan(world, node, node->watch.asleep_until);
        return;
    }
    node->watch.is_looking = false;
    look = look_at(world, node);
    switch (hang_take(&node->watch.hang, &look)) {
    case HANG_KILL:
        kill_node(world, node);
        break;
    case HANG_CERTIFY: /* only by a planted bug: the death itself ends these looks */
        proofs_certify(world, node, node->incarnation);
        return;
    case HANG_WAIT:
        break;
    }
    look_again(world, node);
}

/* A series of crashes: as soon as a node has won, it and some of the others crash, before their
 * disks have stored the result. */
#include "sim/series.h"

#include "sim/queue.h"

void series_on_win(struct world *world)
{
    const struct profile *p = &world->profile;
    int64_t most = 3 * (p->jitter + p->delay);

    if (world->series == 0 || world->is_calm) {
        return;
    }
    world->series--;
    for (raft_id id = 1; id <= world->node_count; id++) {
        world->nodes[id].disk_slow_until = world->now + most;
        if (random_chance(&world->random, 700000)) {
            queue_push(world,
                       (struct event){.kind = EVENT_FAULT,
                                      .at = world->now + random_between(&world->random, 0, most),
                                      .node = id});
        }
    }
}

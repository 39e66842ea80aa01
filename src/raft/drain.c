/* Draining. Before a hand-over that the group wants (a preferred member is back, this leader is
 * removed) the programs that act under the lease are stopped. The leader waits for that at most as
 * long as the lease lasts: leading on meanwhile is always safe. */
#include "raft/drain.h"

#include "raft/state.h"
#include "raft/update.h"

bool drain_is_over(struct raft *raft, raft_id to)
{
    span longest = raft_settings_shorten(&raft->settings, raft->settings.lease);
    struct raft_event *event;

    if (!raft->lease.held) {
        return true;
    }
    if (!raft->drain.is_announced) {
        raft->drain = (struct drain){
            .is_announced = true,
            .to = to,
            .deadline = instant_min(raft->lease.end, instant_add(raft->now, longest))};
        event = update_event(raft, RAFT_EV_DRAIN);
        event->node = to;
        event->term = raft->hard.term;
        event->left = instant_since(raft->drain.deadline, raft->now);
    }
    return raft->drain.is_over;
}

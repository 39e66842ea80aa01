/* How often the group changes its leader: a ring of the latest elections. */
#include "raft/election_rate.h"

#include "raft/state.h"
#include "raft/update.h"

static bool is_within_the_hour(const struct raft *raft, instant at)
{
    return instant_since(raft->now, at).ns < SPAN_S(3600).ns;
}

uint32_t election_rate_last_hour(const struct raft *raft)
{
    uint32_t kept = raft->election_count;
    uint32_t count = 0;

    if (kept > RAFT_ELECTIONS_KEPT) {
        kept = RAFT_ELECTIONS_KEPT;
    }
    for (uint32_t i = 0; i < kept; i++) {
        count += is_within_the_hour(raft, raft->elections[i]);
    }
    return count;
}

/* Each change of leader that this node learns of counts once. Too many of them are reported once,
 * and again only after the rate had fallen. */
void election_rate_note(struct raft *raft, raft_term term, raft_id winner)
{
    struct raft_event *event;
    uint32_t recent;
    uint32_t limit = raft->settings.elections_per_hour_max;

    if (term <= raft->completed_term) {
        return;
    }
    raft->completed_term = term;
    event = update_event(raft, RAFT_EV_ELECTION_COMPLETED);
    event->term = term;
    event->node = winner;

    raft->elections[raft->election_count++ % RAFT_ELECTIONS_KEPT] = raft->now;
    recent = election_rate_last_hour(raft);
    if (limit > 0 && recent > limit && !raft->elections_warned) {
        update_event(raft, RAFT_EV_TOO_MANY_ELECTIONS)->count = recent;
    }
    raft->elections_warned = limit > 0 && recent > limit;
}

#include "member/election.h"

#include "member/state.h"

void election_observe(struct election *election, struct observer *observer)
{
    struct observer **last = &election->observers;

    while (*last) {
        last = &(*last)->next;
    }
    observer->next = NULL;
    *last = observer;
}

void election_tell(struct election *election, const struct baton_event *event)
{
    election->telling++;
    for (struct observer *at = election->observers; at; at = at->next) {
        at->on_event(at, event);
    }
    election->telling--;
}

int election_check(const struct election *election, struct baton_error *reterr)
{
    return election->provider ? BATON_OK
                              : error_set(reterr, BATON_ECLOSED, "election \"%s\": it was stopped",
                                          election->name);
}

const char *election_name(const struct election *election)
{
    return election->name;
}

uint64_t election_epoch(const struct election *election)
{
    return lease_cell_epoch(election->cell);
}

uint64_t election_announced_epoch(const struct election *election)
{
    return election->announced_epoch;
}

bool election_is_leader(const struct election *election, uint64_t *ret_epoch)
{
    return lease_cell_is_leader(election->cell, ret_epoch);
}

span election_lease_left(const struct election *election)
{
    span left = lease_cell_remaining(election->cell);

    return left.ns > 0 ? left : SPAN_NS(0);
}

void election_leader(const struct election *election, struct baton_member *ret, uint64_t *ret_epoch)
{
    *ret = (struct baton_member){.id = ""};
    *ret_epoch = 0;
    if (election->provider) {
        election->provider->ops->leader(election->provider, ret, ret_epoch);
    }
}

bool election_is_cordoned(const struct election *election)
{
    return election->is_cordoned || election->is_unable;
}

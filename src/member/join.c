#include "member/join.h"

#include "member/handover.h"
#include "member/handover_int.h"
#include "member/members.h"
#include "member/state.h"

#include <string.h>

size_t election_bytes(const char *name)
{
    return sizeof(struct election) + strlen(name) + 1;
}

int election_init(struct election *election, const char *name, struct lease_watch *lease)
{
    election->cell = lease_cell_new();
    if (!election->cell) {
        return BATON_ENOMEM;
    }
    memcpy(election->name, name, strlen(name) + 1);
    lease_cell_watch(election->cell, lease);
    return BATON_OK;
}

void election_fini(struct election *election)
{
    lease_cell_free(election->cell);
    election->cell = NULL;
}

/* Nothing of the election is touched after this: another thread may free it. */
static void end(struct election *election)
{
    election->provider = NULL;
    if (election->departure) {
        election->departure->left(election->departure);
    }
}

/* First the state changes, then all observers get the event, and only then a hand-over that the
 * event ends replies: the caller finds all observers informed. */
static void on_event(void *userdata, const struct baton_event *event)
{
    struct election *election = userdata;
    struct handover *ended;

    if (event->type == BATON_EVENT_DRAIN) {
        handover_want(election, event);
        return;
    }
    if (event->type == BATON_EVENT_LOST || event->type == BATON_EVENT_STOPPED) {
        election->announced_epoch = 0;
    }
    if (event->type == BATON_EVENT_ACQUIRED) {
        election->announced_epoch = event->epoch;
    }
    ended = handover_end_by(election, event);
    election_tell(election, event);
    handover_reply(ended);
    if (event->type == BATON_EVENT_STOPPED) {
        end(election);
        return;
    }
    handover_proceed(election);
}

int election_join(struct election *election, struct member *member, bool observes,
                  const char *metadata, struct baton_error *reterr)
{
    struct provider *provider = member_provider(member);
    struct provider_campaign campaign = {
        .election = election->name,
        .eligible = !observes,
        .metadata = metadata,
        .cell = election->cell,
        .on_event = on_event,
        .userdata = election,
    };
    int code;

    if (!election->name[0] || strlen(election->name) >= BATON_NAME_MAX) {
        return error_set(reterr, BATON_EINVAL, "election \"%.40s\": must have 1 to %d bytes",
                         election->name, BATON_NAME_MAX - 1);
    }
    code = members_check_metadata(metadata, reterr);
    if (code != BATON_OK) {
        return code;
    }
    election->member = member;
    election->is_cordoned = observes;
    return provider->ops->campaign(&election->provider, provider, &campaign, reterr);
}

void election_leave(struct election *election, struct departure *departure)
{
    if (!election->provider) {
        departure->left(departure);
        return;
    }
    election->departure = departure;
    election->provider->ops->leave(election->provider);
}

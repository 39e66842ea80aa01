#include "member/join.h"

#include "member/handover.h"
#include "member/handover_int.h"
#include "member/members.h"
#include "member/state.h"

#include <stdlib.h>
#include <string.h>

/* An event that waits until all observers have got the present one. */
struct later {
    struct later *next;
    struct baton_event event;
    char texts[]; /* what the event borrows */
};

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
static void deliver(struct election *election, const struct baton_event *event)
{
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

static const char *copy_text(char **at, const char *text)
{
    char *copy = *at;
    size_t bytes = text ? strlen(text) + 1 : 0;

    if (!text) {
        return NULL;
    }
    memcpy(copy, text, bytes);
    *at += bytes;
    return copy;
}

static bool put_off(struct election *election, const struct baton_event *event)
{
    const char *metadata = event->member.metadata;
    size_t bytes =
        (event->text ? strlen(event->text) + 1 : 0) + (metadata ? strlen(metadata) + 1 : 0);
    struct later *later = malloc(sizeof(*later) + bytes);
    struct later **last = &election->later;
    char *at = later ? later->texts : NULL;

    if (!later) {
        return false;
    }
    *later = (struct later){.event = *event};
    later->event.text = copy_text(&at, event->text);
    later->event.member.metadata = copy_text(&at, metadata);
    while (*last) {
        last = &(*last)->next;
    }
    *last = later;
    if (event->type == BATON_EVENT_STOPPED) {
        election->provider = NULL; /* the provider knows the election no longer */
    }
    return true;
}

void election_catch_up(struct election *election)
{
    bool is_last = false;

    while (!is_last && election->telling == 0 && election->later) {
        struct later *later = election->later;

        election->later = later->next;
        is_last = later->event.type == BATON_EVENT_STOPPED;
        deliver(election, &later->event);
        free(later);
    }
}

/* What an observer does may cause the next event, which the observers behind it must not get before
 * the present one. Without memory they do. */
static void on_event(void *userdata, const struct baton_event *event)
{
    struct election *election = userdata;
    bool is_last = event->type == BATON_EVENT_STOPPED;

    if ((election->telling > 0 || election->later) && put_off(election, event)) {
        return;
    }
    deliver(election, event);
    if (!is_last) {
        election_catch_up(election);
    }
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
    if (!election->provider && !election->later) {
        departure->left(departure);
        return;
    }
    election->departure = departure;
    if (election->provider) {
        election->provider->ops->leave(election->provider);
    }
}

/* Who leads. All of it under the hub's lock. */
#include "provider/memory/hub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct contest *contest_find(struct hub *hub, const char *name)
{
    struct contest *contest = hub->contests;

    while (contest && strcmp(contest->name, name) != 0) {
        contest = contest->next;
    }
    if (!contest && (contest = calloc(1, sizeof(*contest)))) {
        (void)snprintf(contest->name, sizeof(contest->name), "%s", name);
        contest->next = hub->contests;
        hub->contests = contest;
    }
    return contest;
}

struct seat *contest_seat_of(const struct contest *contest, const char *node)
{
    struct seat *seat = contest->seats;

    while (seat && strcmp(seat->memory->node, node) != 0) {
        seat = seat->next;
    }
    return seat;
}

void seat_describe(const struct seat *seat, const struct memory *asking, struct baton_member *ret)
{
    *ret = (struct baton_member){
        .kind = BATON_MEMBER_VOTER,
        .role = seat->contest->leader == seat ? BATON_ROLE_LEADER : BATON_ROLE_FOLLOWER,
        .weight = 1,
        .is_alive = true,
        .is_self = seat->memory == asking,
        .is_cordoned = !seat->eligible,
        .metadata = seat->metadata,
    };
    (void)snprintf(ret->id, sizeof(ret->id), "%s", seat->memory->node);
    (void)snprintf(ret->name, sizeof(ret->name), "%s", seat->memory->node);
    (void)snprintf(ret->address, sizeof(ret->address), "memory:%s", seat->memory->hub->name);
}

/* A lack of memory loses the news of a member, not the member: the list has it. */
static void tell_others(struct contest *contest, const struct seat *subject,
                        enum baton_event_type type)
{
    for (struct seat *seat = contest->seats; seat; seat = seat->next) {
        struct letter *letter = seat == subject ? NULL : calloc(1, sizeof(*letter));
        if (letter) {
            letter->seat = seat;
            letter->event.type = type;
            seat_describe(subject, seat->memory, &letter->event.member);
            letter->event.member.metadata = NULL;
            letter->data = subject->metadata ? strdup(subject->metadata) : NULL;
            hub_post(seat->memory, letter);
        }
    }
}

void contest_sit(struct contest *contest, struct seat *seat)
{
    struct seat **last = &contest->seats;

    while (*last) {
        last = &(*last)->next;
    }
    seat->contest = contest;
    seat->next = NULL;
    *last = seat;
    tell_others(contest, seat, BATON_EVENT_MEMBER_JOINED);
}

static void take_out(struct contest *contest, struct seat *seat)
{
    struct seat **at = &contest->seats;

    while (*at != seat) {
        at = &(*at)->next;
    }
    *at = seat->next;
}

void contest_appoint(struct hub *hub, struct contest *contest, struct seat *to)
{
    struct seat *seat = to;

    if (contest->leader) {
        return;
    }
    for (struct seat *at = contest->seats; at && !seat; at = at->next) {
        seat = at->eligible ? at : NULL;
    }
    if (seat) {
        contest->leader = seat;
        contest->epoch = hub_next_epoch();
        seat->granted_epoch = contest->epoch;
        lease_cell_publish(seat->cell, contest->epoch, INSTANT_NEVER);
    }
    hub_wake_all(hub);
}

static void dismiss(struct contest *contest, enum baton_loss loss)
{
    struct seat *leader = contest->leader;

    lease_cell_void(leader->cell);
    leader->lost_epoch = contest->epoch;
    leader->loss = loss;
    contest->leader = NULL;
}

/* Who leaves office queues up behind the others. */
void contest_hand_over(struct hub *hub, struct contest *contest, enum baton_loss loss,
                       struct seat *to)
{
    struct seat *old = contest->leader;
    struct seat **last = &contest->seats;

    dismiss(contest, loss);
    take_out(contest, old);
    while (*last) {
        last = &(*last)->next;
    }
    old->next = NULL;
    *last = old;
    contest_appoint(hub, contest, to);
}

void contest_stand(struct contest *contest, struct seat *seat, enum baton_loss loss)
{
    struct hub *hub = seat->memory->hub;

    if (contest->leader == seat) {
        dismiss(contest, loss);
    }
    take_out(contest, seat);
    tell_others(contest, seat, BATON_EVENT_MEMBER_LEFT);
    contest_appoint(hub, contest, NULL);
}

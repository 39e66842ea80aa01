/* The choice of the leader. All functions need the hub's lock. */
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

struct registration *contest_registration_of(const struct contest *contest, const char *node)
{
    struct registration *registration = contest->registrations;

    while (registration && strcmp(registration->memory->node, node) != 0) {
        registration = registration->next;
    }
    return registration;
}

void registration_describe(const struct registration *registration, const struct memory *asking,
                           struct baton_member *ret)
{
    *ret = (struct baton_member){
        .kind = BATON_MEMBER_VOTER,
        .role =
            registration->contest->leader == registration ? BATON_ROLE_LEADER : BATON_ROLE_FOLLOWER,
        .weight = 1,
        .is_alive = true,
        .is_self = registration->memory == asking,
        .is_cordoned = !registration->eligible,
        .metadata = registration->metadata,
    };
    (void)snprintf(ret->id, sizeof(ret->id), "%s", registration->memory->node);
    (void)snprintf(ret->name, sizeof(ret->name), "%s", registration->memory->node);
    (void)snprintf(ret->address, sizeof(ret->address), "memory:%s",
                   registration->memory->hub->name);
}

/* Out of memory, the event of a new member is lost, but not the member: the list has it. */
static void notify_others(struct contest *contest, const struct registration *subject,
                          enum baton_event_type type)
{
    for (struct registration *registration = contest->registrations; registration;
         registration = registration->next) {
        struct letter *letter = registration == subject ? NULL : calloc(1, sizeof(*letter));
        if (letter) {
            letter->registration = registration;
            letter->event.type = type;
            registration_describe(subject, registration->memory, &letter->event.member);
            letter->event.member.metadata = NULL;
            letter->data = subject->metadata ? strdup(subject->metadata) : NULL;
            hub_post(registration->memory, letter);
        }
    }
}

void contest_enter(struct contest *contest, struct registration *registration)
{
    struct registration **last = &contest->registrations;

    while (*last) {
        last = &(*last)->next;
    }
    registration->contest = contest;
    registration->next = NULL;
    *last = registration;
    notify_others(contest, registration, BATON_EVENT_MEMBER_JOINED);
}

static void take_out(struct contest *contest, struct registration *registration)
{
    struct registration **at = &contest->registrations;

    while (*at != registration) {
        at = &(*at)->next;
    }
    *at = registration->next;
}

void contest_appoint(struct hub *hub, struct contest *contest, struct registration *to)
{
    struct registration *registration = to;

    if (contest->leader) {
        return;
    }
    for (struct registration *at = contest->registrations; at && !registration; at = at->next) {
        registration = at->eligible ? at : NULL;
    }
    if (registration) {
        contest->leader = registration;
        contest->epoch = hub_next_epoch();
        registration->granted_epoch = contest->epoch;
        lease_cell_publish(registration->cell, contest->epoch, INSTANT_NEVER);
    }
    hub_wake_all(hub);
}

static void dismiss(struct contest *contest, enum baton_loss loss)
{
    struct registration *leader = contest->leader;

    lease_cell_void(leader->cell);
    leader->lost_epoch = contest->epoch;
    leader->loss = loss;
    contest->leader = NULL;
}

/* A former leader goes to the end of the queue. */
void contest_hand_over(struct hub *hub, struct contest *contest, enum baton_loss loss,
                       struct registration *to)
{
    struct registration *old = contest->leader;
    struct registration **last = &contest->registrations;

    dismiss(contest, loss);
    take_out(contest, old);
    while (*last) {
        last = &(*last)->next;
    }
    old->next = NULL;
    *last = old;
    contest_appoint(hub, contest, to);
}

void contest_leave(struct contest *contest, struct registration *registration, enum baton_loss loss)
{
    struct hub *hub = registration->memory->hub;

    if (contest->leader == registration) {
        dismiss(contest, loss);
    }
    take_out(contest, registration);
    notify_others(contest, registration, BATON_EVENT_MEMBER_LEFT);
    contest_appoint(hub, contest, NULL);
}

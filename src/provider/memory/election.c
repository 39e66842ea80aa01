/* The choice of the leader. All functions need the hub's lock. */
#include "provider/memory/hub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hub_election *hub_election_find(struct hub *hub, const char *name)
{
    struct hub_election *election;

    HASH_FIND_STR(hub->elections, name, election);
    if (!election && (election = calloc(1, sizeof(*election)))) {
        (void)snprintf(election->name, sizeof(election->name), "%s", name);
        HASH_ADD_STR(hub->elections, name, election);
        if (!election->hh.tbl) {
            free(election);
            election = NULL;
        }
    }
    return election;
}

struct registration *hub_election_registration_of(const struct hub_election *election,
                                                  const char *node)
{
    struct registration *registration = election->registrations;

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
        .role = registration->election->leader == registration ? BATON_ROLE_LEADER
                                                               : BATON_ROLE_FOLLOWER,
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
static void notify_others(struct hub_election *election, const struct registration *subject,
                          enum baton_event_type type)
{
    for (struct registration *registration = election->registrations; registration;
         registration = registration->next) {
        struct notification *notification =
            registration == subject ? NULL : calloc(1, sizeof(*notification));
        if (notification) {
            notification->registration = registration;
            notification->event.type = type;
            registration_describe(subject, registration->memory, &notification->event.member);
            notification->event.member.metadata = NULL;
            notification->data = subject->metadata ? strdup(subject->metadata) : NULL;
            hub_post(registration->memory, notification);
        }
    }
}

void hub_election_join(struct hub_election *election, struct registration *registration)
{
    struct registration **last = &election->registrations;

    while (*last) {
        last = &(*last)->next;
    }
    registration->election = election;
    registration->next = NULL;
    *last = registration;
    notify_others(election, registration, BATON_EVENT_MEMBER_JOINED);
}

static void take_out(struct hub_election *election, struct registration *registration)
{
    struct registration **at = &election->registrations;

    while (*at != registration) {
        at = &(*at)->next;
    }
    *at = registration->next;
}

void hub_election_appoint(struct hub *hub, struct hub_election *election, struct registration *to)
{
    struct registration *registration = to;

    if (election->leader) {
        return;
    }
    for (struct registration *at = election->registrations; at && !registration; at = at->next) {
        registration = at->eligible ? at : NULL;
    }
    if (registration) {
        election->leader = registration;
        election->epoch = hub_next_epoch();
        registration->granted_epoch = election->epoch;
        lease_cell_publish(registration->cell, election->epoch, INSTANT_NEVER);
    }
    hub_wake_all(hub);
}

static void dismiss(struct hub_election *election, enum baton_loss loss)
{
    struct registration *leader = election->leader;

    lease_cell_void(leader->cell);
    leader->lost_epoch = election->epoch;
    leader->loss = loss;
    election->leader = NULL;
}

/* A former leader goes to the end of the queue. */
void hub_election_hand_over(struct hub *hub, struct hub_election *election, enum baton_loss loss,
                            struct registration *to)
{
    struct registration *old = election->leader;
    struct registration **last = &election->registrations;

    dismiss(election, loss);
    take_out(election, old);
    while (*last) {
        last = &(*last)->next;
    }
    old->next = NULL;
    *last = old;
    hub_election_appoint(hub, election, to);
}

void hub_election_leave(struct hub_election *election, struct registration *registration,
                        enum baton_loss loss)
{
    struct hub *hub = registration->memory->hub;

    if (election->leader == registration) {
        dismiss(election, loss);
    }
    take_out(election, registration);
    notify_others(election, registration, BATON_EVENT_MEMBER_LEFT);
    hub_election_appoint(hub, election, NULL);
}

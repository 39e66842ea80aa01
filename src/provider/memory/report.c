/* The callbacks of each loop when it is woken. */
#include "provider/memory/hub.h"

#include <stdlib.h>

void memory_deliver(struct registration *registration, const struct baton_event *event)
{
    if (!registration->is_leaving || event->type == BATON_EVENT_STOPPED) {
        registration->on_event(registration->userdata, event);
    }
}

static void report_role(struct registration *registration, enum baton_role role)
{
    struct baton_event event = {.type = BATON_EVENT_ROLE, .role = role};

    if (registration->reported_role != role) {
        registration->reported_role = role;
        memory_deliver(registration, &event);
    }
}

struct standing memory_look(struct registration *registration)
{
    struct standing now = {0};

    hub_lock(registration->memory->hub);
    now.granted_epoch = registration->granted_epoch;
    now.lost_epoch = registration->lost_epoch;
    now.loss = registration->loss;
    if (registration->election->leader) {
        now.leader_epoch = registration->election->epoch;
        registration_describe(registration->election->leader, registration->memory, &now.leader);
        now.leader.metadata = NULL;
    }
    hub_unlock(registration->memory->hub);
    return now;
}

static void report_own(struct registration *registration, const struct standing *now)
{
    struct baton_event event;

    if (now->granted_epoch != registration->reported_acquired &&
        registration->reported_acquired != registration->reported_lost) {
        /* Led, lost and leads again, all before this loop woke. */
        registration->reported_lost = registration->reported_acquired;
        event = (struct baton_event){
            .type = BATON_EVENT_LOST, .epoch = registration->reported_lost, .loss = now->loss};
        memory_deliver(registration, &event);
        report_role(registration, BATON_ROLE_FOLLOWER);
    }
    if (now->granted_epoch != registration->reported_acquired) {
        report_role(registration, BATON_ROLE_LEADER);
    }
    /* A listener of the role may have stopped this member, which then reported both its events. */
    if (now->granted_epoch != registration->reported_acquired) {
        registration->reported_acquired = now->granted_epoch;
        event = (struct baton_event){.type = BATON_EVENT_ACQUIRED,
                                     .role = BATON_ROLE_LEADER,
                                     .epoch = now->granted_epoch,
                                     .lease_left_ns = INT64_MAX};
        memory_deliver(registration, &event);
    }
    if (now->lost_epoch == registration->reported_acquired &&
        registration->reported_lost != now->lost_epoch) {
        registration->reported_lost = now->lost_epoch;
        event = (struct baton_event){
            .type = BATON_EVENT_LOST, .epoch = now->lost_epoch, .loss = now->loss};
        memory_deliver(registration, &event);
        report_role(registration, BATON_ROLE_FOLLOWER);
    }
}

void memory_report_standing(struct registration *registration)
{
    struct standing now = memory_look(registration);
    struct baton_event event;

    if (registration->is_leaving) {
        return;
    }
    report_own(registration, &now);
    if (now.leader_epoch != registration->reported_leader && !registration->is_leaving) {
        registration->reported_leader = now.leader_epoch;
        event = (struct baton_event){
            .type = BATON_EVENT_LEADER, .epoch = now.leader_epoch, .member = now.leader};
        memory_deliver(registration, &event);
        if (now.leader_epoch != 0 && !registration->is_leaving) {
            event.type = BATON_EVENT_ELECTION_COMPLETED;
            memory_deliver(registration, &event);
        }
    }
}

static bool is_registered(const struct memory *memory, const struct registration *registration)
{
    const struct registration *at = memory->registrations;

    while (at && at != registration) {
        at = at->next_own;
    }
    return at && !at->is_leaving;
}

static struct notification *take_notification(struct memory *memory)
{
    struct notification *notification;

    hub_lock(memory->hub);
    notification = memory->notifications;
    if (notification) {
        memory->notifications = notification->next;
        if (!memory->notifications) {
            memory->notifications_last = &memory->notifications;
        }
    }
    hub_unlock(memory->hub);
    return notification;
}

static void read_letters(struct memory *memory)
{
    struct notification *notification;

    while (!memory->is_closing && (notification = take_notification(memory))) {
        if (!notification->registration) {
            subscribers_deliver(memory, notification);
        } else if (is_registered(memory, notification->registration)) {
            notification->event.member.metadata = notification->data;
            memory_deliver(notification->registration, &notification->event);
        }
        notification_free(notification);
    }
}

void memory_sweep(struct memory *memory)
{
    struct registration **at = &memory->registrations;

    while (*at && memory->depth == 0) {
        struct registration *registration = *at;
        if (registration->is_leaving) {
            *at = registration->next_own;
            free(registration->metadata);
            free(registration);
        } else {
            at = &registration->next_own;
        }
    }
}

void memory_catch_up(struct memory *memory)
{
    memory->depth++;
    for (struct registration *registration = memory->registrations; registration;
         registration = registration->next_own) {
        memory_report_standing(registration);
    }
    read_letters(memory);
    memory->depth--;
    memory_sweep(memory);
}

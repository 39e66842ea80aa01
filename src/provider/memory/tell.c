/* What each loop tells its own when it is woken. */
#include "provider/memory/hub.h"

#include <stdlib.h>

void memory_tell(struct seat *seat, const struct baton_event *event)
{
    seat->on_event(seat->userdata, event);
}

static void tell_role(struct seat *seat, enum baton_role role)
{
    struct baton_event event = {.type = BATON_EVENT_ROLE, .role = role};
    memory_tell(seat, &event);
}

struct standing memory_look(struct seat *seat)
{
    struct standing now = {0};

    hub_lock(seat->memory->hub);
    now.granted_epoch = seat->granted_epoch;
    now.lost_epoch = seat->lost_epoch;
    now.loss = seat->loss;
    if (seat->contest->leader) {
        now.leader_epoch = seat->contest->epoch;
        seat_describe(seat->contest->leader, seat->memory, &now.leader);
        now.leader.metadata = NULL;
    }
    hub_unlock(seat->memory->hub);
    return now;
}

static void tell_own(struct seat *seat, const struct standing *now)
{
    struct baton_event event;

    if (now->granted_epoch != seat->told_acquired && seat->told_acquired != seat->told_lost) {
        /* Led, lost and leads again, all before this loop woke. */
        seat->told_lost = seat->told_acquired;
        event = (struct baton_event){
            .type = BATON_EVENT_LOST, .epoch = seat->told_lost, .loss = now->loss};
        memory_tell(seat, &event);
    }
    if (now->granted_epoch != seat->told_acquired) {
        seat->told_acquired = now->granted_epoch;
        tell_role(seat, BATON_ROLE_LEADER);
        event = (struct baton_event){.type = BATON_EVENT_ACQUIRED,
                                     .role = BATON_ROLE_LEADER,
                                     .epoch = now->granted_epoch,
                                     .lease_left_ns = INT64_MAX};
        memory_tell(seat, &event);
    }
    if (now->lost_epoch == seat->told_acquired && seat->told_lost != now->lost_epoch) {
        seat->told_lost = now->lost_epoch;
        event = (struct baton_event){
            .type = BATON_EVENT_LOST, .epoch = now->lost_epoch, .loss = now->loss};
        memory_tell(seat, &event);
        tell_role(seat, BATON_ROLE_FOLLOWER);
    }
}

void memory_tell_standing(struct seat *seat)
{
    struct standing now = memory_look(seat);
    struct baton_event event;

    if (seat->is_leaving) {
        return;
    }
    tell_own(seat, &now);
    if (now.leader_epoch != seat->told_leader && !seat->is_leaving) {
        seat->told_leader = now.leader_epoch;
        event = (struct baton_event){
            .type = BATON_EVENT_LEADER, .epoch = now.leader_epoch, .member = now.leader};
        memory_tell(seat, &event);
        if (now.leader_epoch != 0 && !seat->is_leaving) {
            event.type = BATON_EVENT_ELECTION_COMPLETED;
            memory_tell(seat, &event);
        }
    }
}

static bool is_seated(const struct memory *memory, const struct seat *seat)
{
    const struct seat *at = memory->seats;

    while (at && at != seat) {
        at = at->next_own;
    }
    return at && !at->is_leaving;
}

static struct letter *take_letter(struct memory *memory)
{
    struct letter *letter;

    hub_lock(memory->hub);
    letter = memory->letters;
    if (letter) {
        memory->letters = letter->next;
        if (!memory->letters) {
            memory->letters_last = &memory->letters;
        }
    }
    hub_unlock(memory->hub);
    return letter;
}

static void read_letters(struct memory *memory)
{
    struct letter *letter;

    while (!memory->is_closing && (letter = take_letter(memory))) {
        if (!letter->seat) {
            readers_tell(memory, letter);
        } else if (is_seated(memory, letter->seat)) {
            letter->event.member.metadata = letter->data;
            memory_tell(letter->seat, &letter->event);
        }
        letter_free(letter);
    }
}

void memory_sweep(struct memory *memory)
{
    struct seat **at = &memory->seats;

    while (*at && memory->depth == 0) {
        struct seat *seat = *at;
        if (seat->is_leaving) {
            *at = seat->next_own;
            free(seat->metadata);
            free(seat);
        } else {
            at = &seat->next_own;
        }
    }
}

void memory_catch_up(struct memory *memory)
{
    memory->depth++;
    for (struct seat *seat = memory->seats; seat; seat = seat->next_own) {
        memory_tell_standing(seat);
    }
    read_letters(memory);
    memory->depth--;
    memory_sweep(memory);
}

#include "api/notice.h"

#include "api/call.h"

#include <stdlib.h>
#include <string.h>

void mailbox_init(struct mailbox *mailbox)
{
    *mailbox = (struct mailbox){.last = &mailbox->first};
}

struct notice *notice_new(const struct baton_event *event)
{
    const char *metadata = event->member.metadata;
    size_t text = event->text ? strlen(event->text) + 1 : 0;
    size_t more = metadata ? strlen(metadata) + 1 : 0;
    struct notice *notice = malloc(sizeof(*notice) + text + more);
    char *space;

    if (!notice) {
        return NULL;
    }
    *notice = (struct notice){.event = *event};
    space = (char *)(notice + 1);
    if (text) {
        notice->event.text = memcpy(space, event->text, text);
    }
    if (more) {
        notice->event.member.metadata = memcpy(space + text, metadata, more);
    }
    return notice;
}

void mailbox_put(struct mailbox *mailbox, struct notice *notice)
{
    notice->next = NULL;
    *mailbox->last = notice;
    mailbox->last = &notice->next;
    mailbox->count++;
}

struct notice *mailbox_take(struct mailbox *mailbox)
{
    struct notice *notice = mailbox->first;

    if (notice) {
        mailbox->first = notice->next;
        mailbox->count--;
        if (!mailbox->first) {
            mailbox->last = &mailbox->first;
        }
    }
    return notice;
}

/* ---- Running one, all under the lock but the call itself ------------------------------------- */

void listener_unref_locked(struct baton_listener *listener)
{
    struct baton *baton = listener->election->baton;

    if (--listener->references == 0) {
        listener->next = baton->unused;
        baton->unused = listener;
    }
}

void listeners_bury_locked(struct baton *baton)
{
    while (baton->unused) {
        struct baton_listener *listener = baton->unused;
        baton->unused = listener->next;
        free(listener);
    }
}

void drain_over_locked(struct baton_election *election, const struct baton_event *event)
{
    if (event->type == BATON_EVENT_DRAIN && --election->drains_waiting == 0 && election->drained) {
        call_queue_locked(election->drained);
    }
}

/* The listeners that this thread is inside of, the innermost first. */
struct frame {
    const struct baton_listener *listener;
    const struct frame *outer;
};
static _Thread_local const struct frame *innermost;

bool listener_runs_here(const struct baton_listener *listener)
{
    const struct frame *at = innermost;

    while (at && at->listener != listener) {
        at = at->outer;
    }
    return at != NULL;
}

bool listener_runs_for(const struct baton_election *election)
{
    const struct frame *at = innermost;

    while (at && at->listener->election != election) {
        at = at->outer;
    }
    return at != NULL;
}

static void call_fn(struct baton_listener *listener, const struct baton_event *event)
{
    struct baton *baton = listener->election->baton;
    const struct frame frame = {.listener = listener, .outer = innermost};

    listener->running++;
    innermost = &frame;
    unlock(baton);
    listener->fn(listener->election, event, listener->userdata);
    lock(baton);
    innermost = frame.outer;
    listener->running--;
}

static void tell_missed(struct baton_listener *listener)
{
    struct baton_event missed = {.type = BATON_EVENT_ERROR, .at_ns = clock_now().ns};
    size_t count = listener->missed;

    listener->missed = 0;
    if (count > 0 && (listener->mask & BATON_EVENT_ERROR)) {
        (void)error_set(&missed.error, BATON_ETOOBIG,
                        "election \"%s\": this listener was too slow and missed %zu events",
                        baton_election_name(listener->election), count);
        call_fn(listener, &missed);
    }
}

void listener_run_locked(struct baton_listener *listener, const struct baton_event *event)
{
    struct baton_election *election = listener->election;

    listener->references++;
    election->users++;
    if (!listener->is_off) {
        listener->is_off = listener->is_once;
        tell_missed(listener);
        call_fn(listener, event);
    }
    drain_over_locked(election, event);
    listener_unref_locked(listener);
    election->users--;
    (void)pthread_cond_broadcast(&election->baton->changed);
}

/* Takes the reference of a notice with it. */
void notice_run_locked(struct notice *notice)
{
    struct baton_listener *listener = notice->listener;

    listener_run_locked(listener, &notice->event);
    listener_unref_locked(listener);
    free(notice);
}

void notice_drop_locked(struct notice *notice)
{
    drain_over_locked(notice->listener->election, &notice->event);
    listener_unref_locked(notice->listener);
    free(notice);
}

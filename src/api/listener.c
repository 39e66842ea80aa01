/* The listeners of an election, and the thread that each of them runs on.
 *
 * The loop walks an election's list at each event. A listener of the loop is called there; for the
 * others a copy of the event is put into a mailbox: the listener's own, which its thread empties,
 * or the one of the baton, which the thread that calls baton_dispatch() empties.
 */
#include "api/listener.h"

#include "api/leaders.h"
#include "api/notice.h"
#include "api/perform.h"

#include <stdlib.h>
#include <sys/eventfd.h>

/* ---- A thread of its own --------------------------------------------------------------------- */

static void *run_thread(void *argument)
{
    struct baton_listener *listener = argument;
    struct baton_election *election = listener->election;
    struct baton *baton = election->baton;
    struct notice *notice;

    lock(baton);
    for (;;) {
        notice = mailbox_take(&listener->mailbox);
        if (notice) {
            notice_run_locked(notice);
        } else if (listener->is_off || listener->is_ending) {
            break;
        } else {
            (void)pthread_cond_wait(&baton->changed, &baton->lock);
        }
    }
    listener_unref_locked(listener);
    election->users--;
    (void)pthread_cond_broadcast(&baton->changed);
    unlock(baton);
    return NULL;
}

static int start_thread(struct baton_listener *listener)
{
    struct baton *baton = listener->election->baton;
    int r;

    lock(baton);
    r = thread_begin(&listener->thread, run_thread, listener);
    if (r == 0) {
        listener->references++;
        listener->election->users++;
    }
    unlock(baton);
    return r;
}

/* ---- Telling, on the loop -------------------------------------------------------------------- */

/* These are queued beyond the limit, too: they say that work must stop. */
static bool is_never_missed(enum baton_event_type type)
{
    return type == BATON_EVENT_DRAIN || type == BATON_EVENT_LOST || type == BATON_EVENT_STOPPED;
}

static void post_locked(struct baton_listener *listener, const struct baton_event *event)
{
    struct baton *baton = listener->election->baton;
    struct mailbox *mailbox =
        listener->delivery == BATON_ON_THREAD ? &listener->mailbox : &baton->dispatch;
    bool has_room = mailbox->count < BATON_EVENTS_WAITING_MAX || is_never_missed(event->type);
    struct notice *notice = has_room ? notice_new(event) : NULL;

    if (!notice) {
        listener->missed++;
        return;
    }
    if (event->type == BATON_EVENT_DRAIN) {
        listener->election->drains_waiting++;
    }
    notice->listener = listener;
    listener->references++;
    mailbox_put(mailbox, notice);
    if (mailbox == &baton->dispatch && mailbox->count == 1) {
        (void)eventfd_write(baton->event_fd, 1);
    }
    (void)pthread_cond_broadcast(&baton->changed);
}

static void tell_locked(struct baton_listener *listener, const struct baton_event *event)
{
    if (listener->is_off || !(listener->mask & (uint32_t)event->type)) {
        return;
    }
    if (listener->delivery != BATON_ON_LOOP) {
        post_locked(listener, event);
        return;
    }
    if (event->type == BATON_EVENT_DRAIN) {
        listener->election->drains_waiting++;
    }
    listener_run_locked(listener, event);
}

/* Nothing leaves the list while the loop walks along it. */
static void sweep_locked(struct baton_election *election)
{
    struct baton_listener **at = &election->listeners;

    while (*at && election->walks == 0) {
        struct baton_listener *listener = *at;
        /* One that was called once stays for baton_off(), if anybody can call that. */
        if (listener->is_off && !(listener->is_once && listener->has_handle)) {
            *at = listener->next;
            if (listener->delivery == BATON_ON_THREAD && !listener->is_detached) {
                listener->is_detached = true;
                (void)pthread_detach(listener->thread);
            }
            listener_unref_locked(listener);
        } else {
            at = &listener->next;
        }
    }
}

static struct baton_listener *last_locked(const struct baton_election *election)
{
    struct baton_listener *last = election->listeners;

    while (last && last->next) {
        last = last->next;
    }
    return last;
}

/* A listener that another one adds meanwhile is called too, unless the event is a state, which it
 * got when it was added. */
static void walk_locked(struct baton_election *election, const struct baton_event *event)
{
    bool is_state = event->type == BATON_EVENT_ACQUIRED || event->type == BATON_EVENT_LEADER;
    const struct baton_listener *last = last_locked(election);
    struct baton_listener *at = election->listeners;

    for (; at; at = at == last && is_state ? NULL : at->next) {
        tell_locked(at, event);
    }
}

void listeners_tell(struct baton_election *election, const struct baton_event *event)
{
    struct baton_event stamped = *event;

    if (stamped.at_ns == 0) {
        stamped.at_ns = clock_now().ns;
    }
    lock(election->baton);
    election->walks++;
    if (event->type == BATON_EVENT_DRAIN) {
        election->drains_waiting++; /* not over before all have got it */
    }
    walk_locked(election, &stamped);
    election->walks--;
    sweep_locked(election);
    drain_over_locked(election, event);
    listeners_bury_locked(election->baton);
    unlock(election->baton);
}

/* ---- Coming ---------------------------------------------------------------------------------- */

struct on_call {
    struct call base;
    struct baton_listener *listener;
};

/* A listener first gets the present state, so that it misses nothing when it comes late; a state
 * that no listener has got yet comes as an event. */
static void tell_state_locked(struct baton_listener *listener)
{
    struct baton_election *election = listener->election;
    struct baton_event event = {.at_ns = clock_now().ns};

    if (election_announced_epoch(part_of(election)) != 0) {
        event.type = BATON_EVENT_ACQUIRED;
        event.role = BATON_ROLE_LEADER;
        event.epoch = election_announced_epoch(part_of(election));
        event.lease_left_ns = baton_lease_remaining(election);
        tell_locked(listener, &event);
    }
    if (election->leader) {
        event = (struct baton_event){.type = BATON_EVENT_LEADER,
                                     .at_ns = event.at_ns,
                                     .member = *leader_member(election->leader),
                                     .epoch = election->leader_epoch};
        tell_locked(listener, &event);
    }
}

static void run_on(struct call *base)
{
    struct baton_listener *listener = ((struct on_call *)base)->listener;
    struct baton_election *election = listener->election;
    struct baton_listener *last;

    lock(base->baton);
    election->walks++;
    last = last_locked(election);
    *(last ? &last->next : &election->listeners) = listener;
    tell_state_locked(listener);
    election->walks--;
    listeners_bury_locked(base->baton);
    unlock(base->baton);
    call_finish(base, BATON_OK, NULL);
}

static struct baton_listener *listener_new(struct baton_election *election, uint32_t mask,
                                           enum baton_delivery delivery, baton_listener_fn fn,
                                           void *userdata, bool is_once)
{
    struct baton_listener *listener = calloc(1, sizeof(*listener));

    if (listener) {
        listener->election = election;
        listener->mask = mask;
        listener->delivery = delivery;
        listener->fn = fn;
        listener->userdata = userdata;
        listener->is_once = is_once;
        listener->references = 1;
        mailbox_init(&listener->mailbox);
    }
    return listener;
}

static int check_listener(const struct baton_election *election, uint32_t mask,
                          enum baton_delivery delivery, baton_listener_fn fn,
                          struct baton_error *reterr)
{
    int code = check_owner(election->baton, reterr);

    if (code == BATON_OK && (mask == 0 || !fn)) {
        code = error_set(reterr, BATON_EINVAL, "a listener needs a function and a mask of events");
    }
    if (code == BATON_OK && (unsigned)delivery > BATON_ON_DISPATCH) {
        code = error_set(reterr, BATON_EINVAL, "delivery %d: is none of enum baton_delivery",
                         (int)delivery);
    }
    return code;
}

/* The listener's thread sees is_off and ends; no other thread knows the listener yet. */
static void discard(struct baton_listener *listener, bool has_thread)
{
    struct baton *baton = listener->election->baton;

    lock(baton);
    listener->is_off = true;
    (void)pthread_cond_broadcast(&baton->changed);
    unlock(baton);
    if (has_thread) {
        (void)pthread_join(listener->thread, NULL);
    }
    lock(baton);
    listener_unref_locked(listener);
    unlock(baton);
}

static int put_on(struct baton_listener **ret, struct baton_election *election,
                  struct baton_listener *listener, struct baton_error *reterr)
{
    struct on_call *call = call_new(election->baton, sizeof(*call), run_on);
    bool has_thread = false;
    int code = BATON_OK;

    if (!listener || !call) {
        code = error_set(reterr, BATON_ENOMEM, "a listener: out of memory");
    } else if (listener->delivery == BATON_ON_THREAD) {
        has_thread = start_thread(listener) == 0;
        if (!has_thread) {
            code = error_set(reterr, BATON_EIO, "a listener: no thread left (raise RLIMIT_NPROC)");
        }
    }
    if (code == BATON_OK) {
        call->listener = listener;
        listener->has_handle = ret != NULL;
        if (ret) {
            *ret = listener; /* the first event may come before this function returns */
        }
        code = perform(&call->base, INT64_MAX, BATON_EDEADLK, reterr);
    }
    if (code != BATON_OK && listener) {
        discard(listener, has_thread);
        if (ret) {
            *ret = NULL;
        }
    }
    if (call) {
        call_unref(&call->base);
    }
    return code;
}

int baton_on(struct baton_listener **ret, struct baton_election *election, uint32_t mask,
             enum baton_delivery delivery, baton_listener_fn fn, void *userdata,
             struct baton_error *reterr)
{
    int code = check_listener(election, mask, delivery, fn, reterr);

    return code != BATON_OK
               ? code
               : put_on(ret, election, listener_new(election, mask, delivery, fn, userdata, false),
                        reterr);
}

int baton_once(struct baton_listener **ret, struct baton_election *election, uint32_t mask,
               enum baton_delivery delivery, baton_listener_fn fn, void *userdata,
               struct baton_error *reterr)
{
    int code = check_listener(election, mask, delivery, fn, reterr);

    return code != BATON_OK
               ? code
               : put_on(ret, election, listener_new(election, mask, delivery, fn, userdata, true),
                        reterr);
}

/* ---- Going ----------------------------------------------------------------------------------- */

/* Its thread, if it has one, ends by itself or is waited for. Returns whether to join it. */
static bool let_thread_go_locked(struct baton_listener *listener)
{
    if (listener->delivery != BATON_ON_THREAD || listener->is_detached) {
        return false;
    }
    listener->is_detached = true; /* no other thread joins it */
    if (pthread_equal(listener->thread, pthread_self())) {
        (void)pthread_detach(listener->thread);
        return false;
    }
    return true;
}

void baton_off(struct baton_listener *listener)
{
    struct baton_election *election = listener ? listener->election : NULL;
    struct baton *baton;
    bool must_join;

    if (!listener || check_owner(election->baton, NULL) != BATON_OK) {
        return;
    }
    baton = election->baton;
    lock(baton);
    listener->references++;
    listener->is_off = true;
    listener->is_once = false; /* the list may forget it */
    must_join = let_thread_go_locked(listener);
    (void)pthread_cond_broadcast(&baton->changed);
    while (listener->running > 0 && !listener_runs_here(listener)) {
        (void)pthread_cond_wait(&baton->changed, &baton->lock);
    }
    sweep_locked(election);
    unlock(baton);
    if (must_join) {
        (void)pthread_join(listener->thread, NULL);
    }
    lock(baton);
    listener_unref_locked(listener);
    unlock(baton);
}

/* Drops the events that wait for baton_dispatch(), and delivers those that wait for a listener's
 * thread. */
void listeners_end(struct baton_election *election)
{
    struct baton *baton = election->baton;
    struct mailbox kept;
    struct notice *notice;

    lock(baton);
    mailbox_init(&kept);
    while ((notice = mailbox_take(&baton->dispatch))) {
        if (notice->listener->election == election) {
            notice_drop_locked(notice);
        } else {
            mailbox_put(&kept, notice);
        }
    }
    while ((notice = mailbox_take(&kept))) {
        mailbox_put(&baton->dispatch, notice);
    }
    while (election->listeners) {
        struct baton_listener *listener = election->listeners;
        bool must_join;
        election->listeners = listener->next;
        listener->is_ending = true;
        must_join = let_thread_go_locked(listener);
        (void)pthread_cond_broadcast(&baton->changed);
        unlock(baton);
        if (must_join) {
            (void)pthread_join(listener->thread, NULL);
        }
        lock(baton);
        listener->is_off = true;
        listener_unref_locked(listener);
    }
    while (election->users > 0) { /* some may not have returned yet, such as took themselves off */
        (void)pthread_cond_wait(&baton->changed, &baton->lock);
    }
    unlock(baton);
}

/* The rules of every provider: events, and the work that stops before a hand-over. */
#include "provider/conformance.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* ---- Listening ------------------------------------------------------------------------------- */

struct heard {
    _Atomic int acquired;
    _Atomic int lost;
    _Atomic int leader;
    _Atomic int drained;
    _Atomic int stopped;
    _Atomic int out_of_order;
    _Atomic uint64_t epoch;
    _Atomic int loss;
    pthread_t thread;
};

static void hear(struct baton_election *election, const struct baton_event *event, void *userdata)
{
    struct heard *heard = userdata;

    heard->thread = pthread_self();
    if (heard->stopped > 0 || event->at_ns <= 0) {
        heard->out_of_order++;
    }
    switch (event->type) {
    case BATON_EVENT_ACQUIRED:
        heard->out_of_order += heard->acquired != heard->lost;
        heard->out_of_order += event->epoch <= heard->epoch;
        heard->epoch = event->epoch;
        heard->acquired++;
        break;
    case BATON_EVENT_LOST:
        heard->out_of_order += heard->acquired != heard->lost + 1;
        heard->out_of_order += event->epoch != heard->epoch;
        heard->loss = (int)event->loss;
        heard->lost++;
        break;
    case BATON_EVENT_LEADER:
        heard->leader++;
        break;
    case BATON_EVENT_DRAIN:
        heard->out_of_order += !baton_is_leader(election);
        heard->drained++;
        break;
    case BATON_EVENT_STOPPED:
        heard->stopped++;
        break;
    default:
        break;
    }
}

static void listeners_hear_in_order_on_the_thread_they_chose(void **state)
{
    struct group *group = *state;
    struct heard on_loop = {0};
    struct heard on_thread = {0};
    struct heard on_dispatch = {0};
    struct baton_election *election;
    int leader;

    group_open_all(group);
    leader = group_leader(group);
    election = group->members[leader].election;
    ASSERT_OK(baton_on(NULL, election, BATON_EVENT_ALL, BATON_ON_LOOP, hear, &on_loop, failure));
    ASSERT_OK(
        baton_on(NULL, election, BATON_EVENT_ALL, BATON_ON_THREAD, hear, &on_thread, failure));
    ASSERT_OK(
        baton_on(NULL, election, BATON_EVENT_ALL, BATON_ON_DISPATCH, hear, &on_dispatch, failure));
    assert_int_equal(on_loop.acquired, 1); /* where things stand comes first */
    GROUP_AWAIT(baton_dispatch(group->members[leader].baton) >= 0 && on_dispatch.acquired == 1);
    baton_stop(group->members[leader].baton);
    GROUP_AWAIT(baton_dispatch(group->members[leader].baton) >= 0 && on_dispatch.stopped == 1);
    GROUP_AWAIT(on_thread.stopped == 1);
    assert_int_equal(on_loop.stopped, 1);
    assert_int_equal(on_loop.lost + on_thread.lost + on_dispatch.lost, 3);
    assert_int_equal(on_loop.out_of_order + on_thread.out_of_order + on_dispatch.out_of_order, 0);
    assert_true(pthread_equal(on_dispatch.thread, pthread_self()));
    assert_false(pthread_equal(on_loop.thread, pthread_self()));
    assert_false(pthread_equal(on_loop.thread, on_thread.thread));
}

static void the_descriptor_is_readable_while_events_wait(void **state)
{
    struct group *group = *state;
    struct heard heard = {0};
    struct pollfd waits;

    group_open(group, 0, true, true);
    ASSERT_OK(baton_on(NULL, group->members[0].election, BATON_EVENT_STOPPED, BATON_ON_DISPATCH,
                       hear, &heard, failure));
    waits = (struct pollfd){.fd = baton_fd(group->members[0].baton), .events = POLLIN};
    assert_int_equal(poll(&waits, 1, 0), 0);
    baton_stop(group->members[0].baton);
    assert_int_equal(poll(&waits, 1, PATIENCE_MS), 1);
    assert_int_equal(baton_dispatch(group->members[0].baton), 1);
    assert_int_equal(heard.stopped, 1);
    assert_int_equal(poll(&waits, 1, 0), 0);
    assert_int_equal(baton_dispatch(group->members[0].baton), 0);
}

static void once_hears_one_event_and_off_none(void **state)
{
    struct group *group = *state;
    struct heard once = {0};
    struct heard off = {0};
    struct heard all = {0};
    struct baton_listener *listener;
    struct baton_election *election;
    int first;

    group_open_all(group);
    first = group_leader(group);
    election = group->members[first].election;
    ASSERT_OK(baton_once(NULL, election, BATON_EVENT_ACQUIRED | BATON_EVENT_LOST, BATON_ON_LOOP,
                         hear, &once, failure));
    ASSERT_OK(
        baton_on(&listener, election, BATON_EVENT_LOST, BATON_ON_THREAD, hear, &off, failure));
    ASSERT_OK(baton_on(NULL, election, BATON_EVENT_LOST, BATON_ON_LOOP, hear, &all, failure));
    baton_off(listener);
    baton_off(NULL);
    ASSERT_OK(baton_resign(election, BATON_TIMEOUT_DEFAULT, failure));
    GROUP_AWAIT(all.lost == 1);
    assert_int_equal(all.loss, BATON_LOSS_RESIGNED);
    assert_int_equal(once.acquired, 1);
    assert_int_equal(once.lost, 0);
    assert_int_equal(off.lost, 0);
    group_close(group, first); /* it may lead again, and lose it, until then */
}

struct self_off {
    struct baton_listener *listener;
    _Atomic int calls;
};

static void take_self_off(struct baton_election *election, const struct baton_event *event,
                          void *userdata)
{
    struct self_off *self = userdata;

    self->calls++;
    baton_off(self->listener);
}

static void a_listener_may_take_itself_off(void **state)
{
    struct group *group = *state;
    struct self_off on_loop = {0};
    struct self_off on_thread = {0};
    struct baton_election *election;
    int leader;

    group_open_all(group);
    leader = group_leader(group);
    election = group->members[leader].election;
    ASSERT_OK(baton_on(&on_loop.listener, election, BATON_EVENT_LOST | BATON_EVENT_STOPPED,
                       BATON_ON_LOOP, take_self_off, &on_loop, failure));
    ASSERT_OK(baton_on(&on_thread.listener, election, BATON_EVENT_LOST | BATON_EVENT_STOPPED,
                       BATON_ON_THREAD, take_self_off, &on_thread, failure));
    baton_stop(group->members[leader].baton);
    group_close(group, leader);
    assert_int_equal(on_loop.calls, 1);
    assert_int_equal(on_thread.calls, 1);
}

/* ---- Draining -------------------------------------------------------------------------------- */

struct work {
    struct heard heard;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool may_stop;
    _Atomic bool was_leader_to_the_end;
};

static void stop_work(struct baton_election *election, const struct baton_event *event,
                      void *userdata)
{
    struct work *work = userdata;

    hear(election, event, &work->heard);
    (void)pthread_mutex_lock(&work->lock);
    while (!work->may_stop) {
        (void)pthread_cond_wait(&work->changed, &work->lock);
    }
    (void)pthread_mutex_unlock(&work->lock);
    work->was_leader_to_the_end = baton_is_leader(election);
}

static void *resign(void *election)
{
    ASSERT_OK(baton_resign(election, BATON_TIMEOUT_DEFAULT, failure));
    return NULL;
}

static void *cordon(void *election)
{
    ASSERT_OK(baton_cordon(election, failure));
    return NULL;
}

/* The leader hands over, on a thread of its own; ends when another one leads. */
static void check_drained(struct group *group, void *(*hand_over)(void *election))
{
    struct work work = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct baton_election *election;
    pthread_t handing_over;
    int leader;

    group_open_all(group);
    leader = group_leader(group);
    election = group->members[leader].election;
    ASSERT_OK(
        baton_on(NULL, election, BATON_EVENT_DRAIN, BATON_ON_THREAD, stop_work, &work, failure));
    assert_int_equal(pthread_create(&handing_over, NULL, hand_over, election), 0);
    GROUP_AWAIT(work.heard.drained == 1);
    assert_int_equal(baton_resign(election, 0, NULL), BATON_EBUSY);
    assert_int_equal(baton_cordon(election, NULL), BATON_EBUSY);
    (void)pthread_mutex_lock(&work.lock);
    work.may_stop = true;
    (void)pthread_cond_broadcast(&work.changed);
    (void)pthread_mutex_unlock(&work.lock);
    assert_int_equal(pthread_join(handing_over, NULL), 0);
    /* A slow machine may have let the drain's time run out, which the lease bounds. */
    assert_int_equal(work.heard.out_of_order, 0);
    (void)group_leader_but(group, leader);
    group_close(group, leader); /* it may lead again, and drain, until then */
}

static void resigning_waits_until_the_work_has_stopped(void **state)
{
    check_drained(*state, resign);
}

static void cordoning_waits_until_the_work_has_stopped(void **state)
{
    check_drained(*state, cordon);
}

static void resign_from_the_loop(struct baton_election *election, const struct baton_event *event,
                                 void *userdata)
{
    *(_Atomic int *)userdata =
        1 + (baton_resign(election, BATON_TIMEOUT_DEFAULT, NULL) == BATON_OK);
    assert_int_equal(baton_wait_leadership(election, 1000, NULL),
                     baton_is_leader(election) ? BATON_OK : BATON_EDEADLK);
}

static void a_listener_on_the_loop_may_resign_but_not_wait(void **state)
{
    struct group *group = *state;
    _Atomic int resigned = 0;
    int leader;

    group_open_all(group);
    leader = group_leader(group);
    ASSERT_OK(baton_once(NULL, group->members[leader].election, BATON_EVENT_ACQUIRED, BATON_ON_LOOP,
                         resign_from_the_loop, &resigned, failure));
    assert_int_equal(resigned, 2);
    (void)group_leader_but(group, leader);
}

int conformance_listening(void)
{
    const struct CMUnitTest tests[] = {
        CASE(listeners_hear_in_order_on_the_thread_they_chose),
        CASE(the_descriptor_is_readable_while_events_wait),
        CASE(once_hears_one_event_and_off_none),
        CASE(a_listener_may_take_itself_off),
        CASE(resigning_waits_until_the_work_has_stopped),
        CASE(cordoning_waits_until_the_work_has_stopped),
        CASE(a_listener_on_the_loop_may_resign_but_not_wait),
    };

    return cmocka_run_group_tests_name("listening", tests, NULL, NULL);
}

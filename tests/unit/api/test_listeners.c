/* Listeners: what each is told, on which thread, and what it may call. The provider is memory:; the
 * suite in tests/provider/ tests the rest. */
#include "cmocka_all.h"
#include "fixture.h"
#include "lib/process.h"

#include <sched.h>
#include <string.h>

/* ---- Events ---------------------------------------------------------------------------------- */

struct slow {
    atomic_int may_go;
    atomic_int calls;
    atomic_int complaints;
    atomic_int stopped;
};

static void be_slow(struct baton_election *election, const struct baton_event *event,
                    void *userdata)
{
    struct slow *slow = userdata;

    slow->calls++;
    while (!slow->may_go) {
        pause_a_moment();
    }
    if (event->type == BATON_EVENT_ERROR) {
        assert_int_equal(event->error.code, BATON_ETOOBIG);
        assert_non_null(strstr(event->error.message, "missed"));
        slow->complaints++;
    }
    slow->stopped += event->type == BATON_EVENT_STOPPED;
}

static void a_slow_listener_is_told_what_it_missed_and_the_end(void **state)
{
    struct baton *baton = open_memory("a");
    struct baton_election *election = lead(baton, "e");
    struct slow slow = {0};
    atomic_int told = 0;
    /* A resignation would wait for it to drain. */
    uint32_t mask = BATON_EVENT_ALL & ~(uint32_t)BATON_EVENT_DRAIN;

    assert_int_equal(baton_on(NULL, election, mask, BATON_ON_THREAD, be_slow, &slow, NULL),
                     BATON_OK);
    assert_int_equal(baton_on(NULL, election, BATON_EVENT_ALL, BATON_ON_LOOP, count, &told, NULL),
                     BATON_OK);
    await(&slow.calls, 1);
    while (told < 2 * BATON_EVENTS_WAITING_MAX) {
        assert_int_equal(baton_resign(election, -1, NULL), BATON_OK); /* and leads again */
        assert_int_equal(baton_wait_leadership(election, -1, NULL), BATON_OK);
    }
    slow.may_go = 1;
    baton_close(baton);
    assert_true(slow.complaints >= 1);
    assert_true(slow.calls >= BATON_EVENTS_WAITING_MAX);
    assert_int_equal(slow.stopped, 1);
}

static void dispatching_twice_at_once_is_refused(struct baton_election *election,
                                                 const struct baton_event *event, void *userdata)
{
    *(int *)userdata = baton_dispatch(baton_of(election));
}
static void one_thread_dispatches_at_a_time(void **state)
{
    struct baton *baton = open_memory("a");
    struct baton_election *election = lead(baton, "e");
    int inner = 0;

    assert_int_equal(baton_once(NULL, election, BATON_EVENT_ACQUIRED, BATON_ON_DISPATCH,
                                dispatching_twice_at_once_is_refused, &inner, NULL),
                     BATON_OK);
    dispatch_one(baton);
    assert_int_equal(inner, BATON_EBUSY);
    baton_close(baton);
}

static void what_waits_for_dispatch_goes_with_the_election(void **state)
{
    struct baton *baton = open_memory("a");
    struct baton_election *one = lead(baton, "one");
    struct baton_election *other = lead(baton, "other");
    atomic_int of_one = 0;
    atomic_int of_other = 0;

    (void)baton_on(NULL, one, BATON_EVENT_ACQUIRED, BATON_ON_DISPATCH, count, &of_one, NULL);
    (void)baton_on(NULL, other, BATON_EVENT_ACQUIRED, BATON_ON_DISPATCH, count, &of_other, NULL);
    assert_int_equal(baton_leave(one, NULL), BATON_OK);
    dispatch_one(baton);
    assert_int_equal(of_one, 0);
    assert_int_equal(of_other, 1);
    baton_close(baton);
}

static void a_drain_that_nobody_ends_ends_with_its_time(void **state)
{
    struct baton *baton = open_memory("a");
    struct baton_election *election = lead(baton, "e");
    struct baton_listener *listener;
    atomic_int drained = 0;

    assert_int_equal(
        baton_on(&listener, election, BATON_EVENT_DRAIN, BATON_ON_DISPATCH, count, &drained, NULL),
        BATON_OK);
    assert_int_equal(baton_resign(election, 5, NULL), BATON_OK); /* nobody dispatches */
    assert_int_equal(baton_dispatch(baton), 1);
    assert_int_equal(drained, 1);
    baton_off(listener);
    baton_close(baton);
}

static void who_dispatches_hears_of_the_drain_while_it_resigns(void **state)
{
    struct baton *baton = open_memory("a");
    struct baton_election *election = lead(baton, "e");
    atomic_int drained = 0;

    assert_int_equal(
        baton_on(NULL, election, BATON_EVENT_DRAIN, BATON_ON_DISPATCH, count, &drained, NULL),
        BATON_OK);
    (void)baton_dispatch(baton);
    assert_int_equal(baton_resign(election, -1, NULL), BATON_OK);
    assert_int_equal(drained, 1);
    baton_close(baton);
}

static void resign_while_dispatching(struct baton_election *election,
                                     const struct baton_event *event, void *userdata)
{
    *(int *)userdata = baton_resign(election, -1, NULL);
    assert_true(baton_is_leader(election)); /* until this function has returned */
}

static void a_listener_that_is_dispatched_may_resign_but_not_wait(void **state)
{
    struct baton *baton = open_memory("a");
    struct baton_election *election = lead(baton, "e");
    atomic_int drained = 0;
    atomic_int lost = 0;
    int code = 1;

    assert_int_equal(
        baton_on(NULL, election, BATON_EVENT_DRAIN, BATON_ON_DISPATCH, count, &drained, NULL),
        BATON_OK);
    assert_int_equal(
        baton_on(NULL, election, BATON_EVENT_LOST, BATON_ON_DISPATCH, count, &lost, NULL),
        BATON_OK);
    assert_int_equal(baton_once(NULL, election, BATON_EVENT_ACQUIRED, BATON_ON_DISPATCH,
                                resign_while_dispatching, &code, NULL),
                     BATON_OK);
    dispatch_one(baton);
    assert_int_equal(code, BATON_OK);
    dispatch_one(baton);
    assert_int_equal(drained, 1);
    dispatch_one(baton);
    assert_int_equal(lost, 1);
    baton_close(baton);
}

static void nobody_drains_for_a_member_that_there_is_not(void **state)
{
    struct baton *baton = open_memory("a");
    struct baton_election *election = lead(baton, "e");
    struct baton_error error = {0};
    struct baton *other = open_memory("b");
    atomic_int drained = 0;

    (void)campaign(other, "e");
    assert_int_equal(
        baton_on(NULL, election, BATON_EVENT_DRAIN, BATON_ON_LOOP, count, &drained, NULL),
        BATON_OK);
    assert_int_equal(baton_pass(election, "typo", -1, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "\"typo\""));
    assert_non_null(strstr(error.message, "b"));
    assert_int_equal(baton_pass(election, "a", -1, &error), BATON_EINVAL); /* itself */
    assert_int_equal(drained, 0);
    assert_true(baton_is_leader(election));
    assert_int_equal(baton_pass(election, "b", 0, NULL), BATON_OK);
    baton_close(other);
    baton_close(baton);
}

struct course {
    char types[64]; /* 'A', 'D', 'L' */
    size_t count;
};

static void note(struct baton_election *election, const struct baton_event *event, void *userdata)
{
    struct course *course = userdata;

    if (course->count + 1 < sizeof(course->types)) {
        course->types[course->count++] = event->type == BATON_EVENT_ACQUIRED ? 'A'
                                         : event->type == BATON_EVENT_DRAIN  ? 'D'
                                                                             : 'L';
    }
}

/* The lease holds a moment before its news has come through the loop. */
static void a_leadership_that_ends_at_once_is_heard_of_before_it_ends(void **state)
{
    uint32_t mask = BATON_EVENT_ACQUIRED | BATON_EVENT_DRAIN | BATON_EVENT_LOST;
    struct baton *baton = open_memory("a");

    for (int i = 0; i < 30; i++) {
        struct course course = {.count = 0};
        struct baton_election *election = campaign(baton, "e");
        assert_int_equal(baton_on(NULL, election, mask, BATON_ON_DISPATCH, note, &course, NULL),
                         BATON_OK);
        (void)baton_dispatch(baton); /* so it goes on dispatching while it waits */
        while (!baton_is_leader(election)) {
            (void)sched_yield();
        }
        assert_int_equal(baton_cordon(election, NULL), BATON_OK);
        while (course.count < 3) {
            (void)baton_dispatch(baton);
        }
        assert_string_equal(course.types, "ADL");
        assert_int_equal(baton_leave(election, NULL), BATON_OK);
    }
    baton_close(baton);
}

struct leaving {
    atomic_int codes[3]; /* by delivery; 1: not called yet */
};

static void leave_inside(struct baton_election *election, const struct baton_event *event,
                         void *userdata)
{
    *(atomic_int *)userdata = baton_leave(election, NULL);
}

/* It would free what runs, or wait for itself. */
static void a_listener_cannot_leave_its_election(void **state)
{
    struct leaving leaving = {.codes = {1, 1, 1}};
    struct baton *baton = open_memory("a");
    struct baton_election *election = lead(baton, "e");

    for (int i = 0; i < 3; i++) {
        assert_int_equal(baton_once(NULL, election, BATON_EVENT_ACQUIRED, (enum baton_delivery)i,
                                    leave_inside, &leaving.codes[i], NULL),
                         BATON_OK);
    }
    while (leaving.codes[0] == 1 || leaving.codes[1] == 1 || leaving.codes[2] == 1) {
        (void)baton_dispatch(baton);
        pause_a_moment();
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(leaving.codes[i], BATON_EDEADLK);
    }
    assert_true(baton_is_leader(election));
    assert_int_equal(baton_leave(election, NULL), BATON_OK);
    baton_close(baton);
}

struct inside {
    atomic_int wait, change, put, done;
};

static void wait_inside(struct baton_election *election, const struct baton_event *event,
                        void *userdata)
{
    struct baton_member member = {.id = "b", .name = "b"};
    struct inside *inside = userdata;

    inside->wait = baton_wait_leadership(election, 1000, NULL);
    inside->change = baton_member_add(election, &member, 1000, NULL);
    inside->put = baton_put(baton_of(election), "k", "v", 1, 0, 0, NULL);
    inside->done = 1;
}

static void on_the_loop_s_thread_nothing_waits_and_a_write_begins(void **state)
{
    struct inside inside = {.done = 0};
    struct baton *baton = open_memory("a");
    struct baton_election *election = campaign(baton, "e");
    struct baton_value *value = NULL;

    assert_int_equal(baton_wait(election, -1, NULL), BATON_OK);
    assert_int_equal(baton_cordon(election, NULL), BATON_OK);
    assert_int_equal(
        baton_once(NULL, election, BATON_EVENT_ALL, BATON_ON_LOOP, wait_inside, &inside, NULL),
        BATON_OK);
    assert_int_equal(baton_uncordon(election, NULL), BATON_OK);
    await(&inside.done, 1);
    assert_true(inside.wait == BATON_EDEADLK || inside.wait == BATON_OK);
    assert_int_equal(inside.change, BATON_EDEADLK);
    assert_int_equal(inside.put, BATON_OK);
    for (int i = 0; baton_get(baton, "k", &value, NULL) != BATON_OK; i++) {
        assert_true(i < PATIENCE_MS);
        pause_a_moment();
    }
    baton_values_free(value, 1);
    baton_close(baton);
}

struct visit {
    atomic_int acquired, leader;
};

static void note_visit(struct baton_election *election, const struct baton_event *event,
                       void *userdata)
{
    struct visit *visit = userdata;

    visit->acquired += event->type == BATON_EVENT_ACQUIRED;
    visit->leader += event->type == BATON_EVENT_LEADER;
}

static void add_another(struct baton_election *election, const struct baton_event *event,
                        void *userdata)
{
    assert_int_equal(
        baton_on(NULL, election, BATON_EVENT_ALL, BATON_ON_LOOP, note_visit, userdata, NULL),
        BATON_OK);
}

/* It gets the state when it is added, and is behind the others in the list. */
static void a_listener_that_a_listener_adds_gets_each_event_once(void **state)
{
    static const enum baton_event_type in[] = {BATON_EVENT_ACQUIRED, BATON_EVENT_LEADER,
                                               BATON_EVENT_ROLE};
    struct baton *baton = open_memory("a");

    for (size_t i = 0; i < sizeof(in) / sizeof(in[0]); i++) {
        struct baton_election *election = lead(baton, "e");
        struct visit visit = {0};
        assert_int_equal(baton_wait(election, -1, NULL), BATON_OK);
        assert_int_equal(baton_cordon(election, NULL), BATON_OK);
        assert_int_equal(
            baton_once(NULL, election, in[i], BATON_ON_LOOP, add_another, &visit, NULL), BATON_OK);
        assert_int_equal(baton_uncordon(election, NULL), BATON_OK);
        await(&visit.leader, 1);
        assert_int_equal(baton_leave(election, NULL), BATON_OK);
        assert_int_equal(visit.acquired, 1);
        assert_true(visit.leader <= 2); /* this one, and none at the end */
    }
    baton_close(baton);
}

static void note_all(struct baton_election *election, const struct baton_event *event,
                     void *userdata)
{
    struct course *course = userdata;

    if (course->count + 1 < sizeof(course->types)) {
        course->types[course->count++] = event->type == BATON_EVENT_ACQUIRED  ? 'A'
                                         : event->type == BATON_EVENT_LOST    ? 'L'
                                         : event->type == BATON_EVENT_STOPPED ? 'S'
                                                                              : '?';
    }
}

static void stop_when_leading(struct baton_election *election, const struct baton_event *event,
                              void *userdata)
{
    if (event->role == BATON_ROLE_LEADER) {
        baton_stop(baton_of(election));
    }
}

/* The role comes before the leadership. */
static void a_leadership_that_its_role_s_listener_ends_has_begun_before(void **state)
{
    uint32_t mask = BATON_EVENT_ACQUIRED | BATON_EVENT_LOST | BATON_EVENT_STOPPED;
    struct baton *first = open_memory("a");
    struct baton *baton = open_memory("b");
    struct baton_election *election;
    struct course course = {.count = 0};

    (void)lead(first, "e");
    election = campaign(baton, "e");
    assert_int_equal(
        baton_on(NULL, election, BATON_EVENT_ROLE, BATON_ON_LOOP, stop_when_leading, NULL, NULL),
        BATON_OK);
    assert_int_equal(baton_on(NULL, election, mask, BATON_ON_LOOP, note_all, &course, NULL),
                     BATON_OK);
    baton_close(first);
    while (baton_wait_leadership(election, -1, NULL) == BATON_OK) { /* not stopped yet */
        pause_a_moment();
    }
    baton_close(baton);
    assert_string_equal(course.types, "ALS");
}

static void hear_nothing(struct baton *baton, const char *channel, const void *data, size_t bytes,
                         void *userdata)
{
}

static void a_handle_is_null_when_a_listener_is_refused(void **state)
{
    struct baton *baton = open_memory("a");
    struct baton_election *election = campaign(baton, "e");
    struct baton_subscription *subscription = (struct baton_subscription *)baton;
    struct baton_listener *listeners[3];

    baton_stop(baton);
    for (int i = 0; i < 3; i++) {
        listeners[i] = (struct baton_listener *)baton;
        assert_int_equal(baton_on(&listeners[i], election, BATON_EVENT_ALL, (enum baton_delivery)i,
                                  count, NULL, NULL),
                         BATON_ECLOSED);
        assert_null(listeners[i]);
    }
    assert_int_equal(baton_subscribe(&subscription, baton, "c", hear_nothing, NULL, NULL),
                     BATON_ECLOSED);
    assert_null(subscription);
    baton_close(baton);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_listener_is_told_what_it_missed_and_the_end),
        cmocka_unit_test(one_thread_dispatches_at_a_time),
        cmocka_unit_test(what_waits_for_dispatch_goes_with_the_election),
        cmocka_unit_test(a_drain_that_nobody_ends_ends_with_its_time),
        cmocka_unit_test(who_dispatches_hears_of_the_drain_while_it_resigns),
        cmocka_unit_test(a_listener_that_is_dispatched_may_resign_but_not_wait),
        cmocka_unit_test(nobody_drains_for_a_member_that_there_is_not),
        cmocka_unit_test(a_leadership_that_ends_at_once_is_heard_of_before_it_ends),
        cmocka_unit_test(a_listener_cannot_leave_its_election),
        cmocka_unit_test(on_the_loop_s_thread_nothing_waits_and_a_write_begins),
        cmocka_unit_test(a_listener_that_a_listener_adds_gets_each_event_once),
        cmocka_unit_test(a_leadership_that_its_role_s_listener_ends_has_begun_before),
        cmocka_unit_test(a_handle_is_null_when_a_listener_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Calls from several threads at once, and calls that meet a stop. */
#include "api/call.h"
#include "cmocka_all.h"
#include "fixture.h"
#include "lib/process.h"

#include <pthread.h>
#include <stdint.h>

/* ---- Threads --------------------------------------------------------------------------------- */

static atomic_bool churning;
static atomic_uint rounds;

static void *churn(void *argument)
{
    struct baton_election *election = argument;
    atomic_int told = 0;

    for (unsigned i = 0; churning; i++) {
        struct baton_listener *listener = NULL;
        struct baton_member *members;
        struct baton_member leader;
        size_t number;
        enum baton_delivery delivery = (enum baton_delivery)(i % 3);
        if (baton_on(&listener, election, BATON_EVENT_ALL, delivery, count, &told, NULL) == 0) {
            (void)baton_is_leader(election);
            (void)baton_role(election);
            (void)baton_leader(election, &leader, NULL, NULL);
            if (baton_members(election, &members, &number, NULL) == 0) {
                baton_members_free(members);
            }
            (void)baton_resign(election, 1, NULL);
            (void)baton_dispatch(baton_of(election));
            baton_off(listener);
            rounds++;
        }
    }
    return NULL;
}

/* For the sanitizers: everything at once, and the provider closed under it. */
static void any_thread_may_call_anything(void **state)
{
    struct baton *batons[2] = {open_memory("a"), open_memory("b")};
    struct baton_election *elections[2];
    pthread_t threads[4];

    churning = true;
    for (int i = 0; i < 2; i++) {
        elections[i] = campaign(batons[i], "e");
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, churn, elections[i % 2]), 0);
    }
    for (int i = 0; i < 100; i++) {
        pause_a_moment();
        assert_false(baton_is_leader(elections[0]) && baton_is_leader(elections[1]) &&
                     baton_is_leader(elections[0]) &&
                     baton_epoch(elections[0]) == baton_epoch(elections[1]));
    }
    for (int i = 0; rounds == 0; i++) {
        assert_true(i < PATIENCE_MS);
        pause_a_moment();
    }
    baton_stop(batons[0]);
    pause_a_moment();
    churning = false;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    baton_close(batons[0]);
    baton_close(batons[1]);
}

/* ---- Behind a stop --------------------------------------------------------------------------- */

struct gate {
    atomic_int entered;
    atomic_int open;
};

static void wait_at_gate(struct baton *baton, const char *channel, const void *data, size_t bytes,
                         void *userdata)
{
    struct gate *gate = userdata;

    gate->entered = 1;
    await(&gate->open, 1);
}

static void await_queued(struct baton *baton, int least)
{
    int count = 0;

    for (int i = 0; count < least; i++) {
        assert_true(i < PATIENCE_MS);
        pause_a_moment();
        count = 0;
        lock(baton);
        for (const struct call *call = baton->calls_first; call; call = call->next) {
            count++;
        }
        unlock(baton);
    }
}

static void *stop_it(void *baton)
{
    baton_stop(baton);
    return NULL;
}

static void *campaign_late(void *baton)
{
    struct baton_election *election = NULL;

    return (void *)(intptr_t)baton_campaign(&election, baton, "late", NULL, NULL);
}

static void nothing(struct baton *baton, const struct baton_value *value, void *userdata)
{
}

static void *watch_late(void *baton)
{
    return (void *)(intptr_t)baton_watch(NULL, baton, "late", nothing, NULL, NULL);
}

/* The provider is closing when such a call's turn comes, and would keep what the call gives it. */
static void a_call_that_is_queued_behind_a_stop_does_not_begin(void **state)
{
    void *(*const bodies[])(void *) = {stop_it, campaign_late, watch_late};
    struct baton *baton = open_memory("a");
    struct gate gate = {0};
    pthread_t threads[3];
    void *code;

    assert_int_equal(baton_subscribe(NULL, baton, "gate", wait_at_gate, &gate, NULL), BATON_OK);
    assert_int_equal(baton_publish(baton, "gate", NULL, 0, NULL), BATON_OK);
    await(&gate.entered, 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, bodies[i], baton), 0);
        await_queued(baton, i + 1);
    }
    gate.open = 1;
    assert_int_equal(pthread_join(threads[0], NULL), 0);
    for (int i = 1; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], &code), 0);
        assert_int_equal((int)(intptr_t)code, BATON_ECLOSED);
    }
    baton_close(baton);
}

struct parting {
    struct gate gate;
    atomic_int entered, left, code;
};

static void *leave_and_say_so(void *election)
{
    struct parting *parting = ((struct parting **)election)[1];

    parting->code = baton_leave(((struct baton_election **)election)[0], NULL);
    parting->left = 1;
    return NULL;
}

static void see_the_end(struct baton_election *election, const struct baton_event *event,
                        void *userdata)
{
    ((struct parting *)userdata)->entered = 1;
}

/* Queues a hand-over for a loop that has other work, once the election has ended. */
static void resign_too_late(struct baton_election *election, const struct baton_event *event,
                            void *userdata)
{
    struct parting *parting = userdata;
    void *both[] = {election, parting};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, leave_and_say_so, both), 0);
    await(&parting->entered, 1);
    assert_int_equal(baton_publish(baton_of(election), "gate", NULL, 0, NULL), BATON_OK);
    await(&parting->gate.entered, 1);
    assert_int_equal(baton_resign(election, 0, NULL), BATON_OK);
    (void)pthread_detach(thread);
}

/* The call is queued, and its listener has returned. */
static void an_election_stays_for_a_hand_over_that_nobody_waits_for(void **state)
{
    struct baton *baton = open_memory("a");
    struct baton_election *election = lead(baton, "e");
    struct parting parting = {.left = 0};

    assert_int_equal(baton_subscribe(NULL, baton, "gate", wait_at_gate, &parting.gate, NULL), 0);
    assert_int_equal(
        baton_on(NULL, election, BATON_EVENT_STOPPED, BATON_ON_LOOP, see_the_end, &parting, NULL),
        BATON_OK);
    assert_int_equal(baton_once(NULL, election, BATON_EVENT_ACQUIRED, BATON_ON_DISPATCH,
                                resign_too_late, &parting, NULL),
                     BATON_OK);
    for (int i = 0; baton_dispatch(baton) == 0; i++) {
        assert_true(i < PATIENCE_MS);
        pause_a_moment();
    }
    for (int i = 0; i < 50; i++) {
        pause_a_moment();
        assert_int_equal(parting.left, 0);
    }
    parting.gate.open = 1;
    await(&parting.left, 1);
    assert_int_equal(parting.code, BATON_OK);
    baton_close(baton);
}

/* The C library gives the number of a thread that has ended to the next one. */
static void *leave_it(void *election)
{
    return (void *)(intptr_t)baton_leave(election, NULL);
}

static void after_a_stop_any_thread_may_leave(void **state)
{
    struct baton *baton = open_memory("a");
    struct baton_election *election = campaign(baton, "e");
    pthread_t thread;
    void *code;

    baton_stop(baton);
    assert_int_equal(pthread_create(&thread, NULL, leave_it, election), 0);
    assert_int_equal(pthread_join(thread, &code), 0);
    assert_int_equal((int)(intptr_t)code, BATON_OK);
    baton_close(baton);
}

struct lingering {
    pthread_key_t key;
    atomic_int ends, may_end, stopped;
    struct baton *baton;
};

static void linger(void *userdata)
{
    struct lingering *lingering = userdata;

    lingering->ends = 1;
    await(&lingering->may_end, 1);
}

static void make_it_linger(struct baton_election *election, const struct baton_event *event,
                           void *userdata)
{
    struct lingering *lingering = userdata;

    assert_int_equal(pthread_setspecific(lingering->key, lingering), 0);
}

static void *stop_and_say_so(void *userdata)
{
    struct lingering *lingering = userdata;

    baton_stop(lingering->baton);
    lingering->stopped++;
    return NULL;
}

/* Whoever returns first may close, which frees what that thread still uses. */
static void every_thread_that_stops_waits_for_the_end_of_the_loop_s_thread(void **state)
{
    struct lingering lingering = {.baton = open_memory("a")};
    struct baton_election *election = lead(lingering.baton, "e");
    pthread_t threads[3];

    assert_int_equal(pthread_key_create(&lingering.key, linger), 0);
    assert_int_equal(baton_on(NULL, election, BATON_EVENT_STOPPED, BATON_ON_LOOP, make_it_linger,
                              &lingering, NULL),
                     BATON_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, stop_and_say_so, &lingering), 0);
    }
    await(&lingering.ends, 1);
    for (int i = 0; i < 50; i++) {
        pause_a_moment();
        assert_int_equal(lingering.stopped, 0);
    }
    lingering.may_end = 1;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    (void)pthread_key_delete(lingering.key);
    baton_close(lingering.baton);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_thread_may_call_anything),
        cmocka_unit_test(a_call_that_is_queued_behind_a_stop_does_not_begin),
        cmocka_unit_test(an_election_stays_for_a_hand_over_that_nobody_waits_for),
        cmocka_unit_test(after_a_stop_any_thread_may_leave),
        cmocka_unit_test(every_thread_that_stops_waits_for_the_end_of_the_loop_s_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

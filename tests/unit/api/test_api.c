/* The parts of the library that do not depend on the provider: threads, queues, misuse. The
 * provider is memory:; the suite in tests/provider/ tests the rest. */
#include "api/call.h"
#include "cmocka_all.h"
#include "lib/process.h"

#include <baton.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void pause_a_moment(void)
{
    struct timespec moment = {.tv_nsec = 1000000};
    (void)nanosleep(&moment, NULL);
}

static void await(const atomic_int *number, int least)
{
    for (int i = 0; *number < least; i++) {
        assert_true(i < PROCESS_PATIENCE_MS);
        pause_a_moment();
    }
}

static struct baton *open_memory(const char *node)
{
    struct baton_options options = {.size = sizeof(options), .node = node};
    struct baton_error error;
    struct baton *baton = NULL;

    if (baton_open(&baton, "memory:unit", &options, &error) != BATON_OK) {
        fail_msg("%s", error.message);
    }
    return baton;
}

static struct baton_election *campaign(struct baton *baton, const char *name)
{
    struct baton_error error;
    struct baton_election *election = NULL;

    if (baton_campaign(&election, baton, name, NULL, &error) != BATON_OK) {
        fail_msg("%s", error.message);
    }
    return election;
}

static struct baton_election *lead(struct baton *baton, const char *name)
{
    struct baton_election *election = campaign(baton, name);

    assert_int_equal(baton_wait_leadership(election, -1, NULL), BATON_OK);
    return election;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static void an_unknown_provider_is_named_with_those_there_are(void **state)
{
    struct baton_error error;
    struct baton *baton = NULL;
    (void)state;

    assert_int_equal(baton_open(&baton, "etcd://host:1/?x=1", NULL, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "rediss:, ")); /* a provider's other schemes, too */
    assert_non_null(strstr(error.message, "etcd"));
    assert_non_null(strstr(error.message, "memory:"));
    assert_int_equal(baton_open(&baton, "", NULL, &error), BATON_EINVAL);
    assert_null(baton);
}

static void a_password_in_a_url_is_in_no_error(void **state)
{
    struct baton_error error = {0};
    struct baton *baton = NULL;
    (void)state;

    assert_int_equal(baton_open(&baton, "nosuch://me:geheim@host/", NULL, &error), BATON_EINVAL);
    assert_null(strstr(error.message, "geheim"));
}

static void settings_beat_the_url(void **state)
{
    const struct baton_setting settings[] = {{"node", "from-settings"}};
    struct baton_options options = {
        .size = sizeof(options), .settings = settings, .setting_count = 1};
    struct baton_election *election;
    struct baton_member leader;
    struct baton *baton = NULL;
    (void)state;

    assert_int_equal(baton_open(&baton, "memory:s?node=from-url", &options, NULL), BATON_OK);
    election = campaign(baton, "e");
    assert_int_equal(baton_wait(election, -1, NULL), BATON_OK);
    assert_int_equal(baton_leader(election, &leader, NULL, NULL), BATON_OK);
    assert_string_equal(leader.id, "from-settings");
    baton_close(baton);
}

/* Passed over, each of these would elect by other rules than were asked for. */
static void a_setting_that_the_provider_does_not_have_is_refused(void **state)
{
    static const struct {
        const char *url, *says;
    } rows[] = {
        {"memory:?peers=b@127.0.0.1:2", "\"peers\": memory: has no such setting; it has node"},
        {"redis://127.0.0.1:1?wait-replica=1", "is \"wait-replicas\" meant?"},
        {"redis://127.0.0.1:1?lease=1s&lease=9s", "lease: is given twice"},
        {"redis://127.0.0.1:1?lease=30", "lease: '30': must be a duration with its unit"},
        {"redis://127.0.0.1:1?state-prefix", "state-prefix: is empty"},
        {"redis+sentinel://127.0.0.1:1/s?data=d", "redis+sentinel: has no such setting"},
    };
    const struct baton_setting settings[] = {{"quorum", NULL}, {NULL, NULL}};
    struct baton_options options = {
        .size = sizeof(options), .settings = settings, .setting_count = 1};
    struct baton_error error = {0};
    struct baton *baton = NULL;
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(baton_open(&baton, rows[i].url, NULL, &error), BATON_EINVAL);
        if (!strstr(error.message, rows[i].says)) {
            fail_msg("%s: %s", rows[i].url, error.message);
        }
    }
    assert_int_equal(baton_open(&baton, "redis://127.0.0.1:1", &options, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "quorum: is empty"));
    options.settings++; /* without a name */
    assert_int_equal(baton_open(&baton, "memory:", &options, &error), BATON_EINVAL);
    assert_null(baton);
}

static void a_memory_without_a_name_is_its_own(void **state)
{
    struct baton *one = NULL;
    struct baton *other = NULL;
    (void)state;

    assert_int_equal(baton_open(&one, "memory:", NULL, NULL), BATON_OK);
    assert_int_equal(baton_open(&other, "memory:", NULL, NULL), BATON_OK);
    (void)lead(one, "e");
    (void)lead(other, "e");
    baton_close(one);
    baton_close(other);
    baton_close(NULL);
    baton_stop(NULL);
    assert_int_equal(baton_leave(NULL, NULL), BATON_OK);
}

static void two_of_one_name_cannot_run_in_one_election(void **state)
{
    struct baton *one = open_memory("twin");
    struct baton *other = open_memory("twin");
    struct baton_election *election = NULL;
    struct baton_error error;
    (void)state;

    (void)campaign(one, "e");
    assert_int_equal(baton_campaign(&election, other, "e", NULL, &error), BATON_EEXIST);
    assert_non_null(strstr(error.message, "twin"));
    baton_close(one);
    baton_close(other);
}

/* ---- Structs that may grow ------------------------------------------------------------------- */

static void a_struct_that_does_not_say_its_size_is_refused(void **state)
{
    struct baton_options options = {.node = "a"};
    struct baton_campaign_options campaign = {.size = sizeof(size_t) + 4};
    struct baton_log log = {.fd = 2};
    struct baton_options logged = {.size = sizeof(logged), .log = &log};
    struct baton_election *election = NULL;
    struct baton_error error = {0};
    struct baton *baton = NULL;
    (void)state;

    assert_int_equal(baton_open(&baton, "memory:", &options, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "sizeof(struct baton_options)"));
    assert_int_equal(baton_open(&baton, "memory:", &logged, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "sizeof(struct baton_log)"));
    assert_null(baton);
    assert_int_equal(baton_open(&baton, "memory:", NULL, NULL), BATON_OK);
    assert_int_equal(baton_campaign(&election, baton, "e", &campaign, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "its size is 12"));
    baton_close(baton);
}

/* The fields behind its size are not the program's. */
static void a_program_with_an_older_header_leaves_the_newer_fields_out(void **state)
{
    struct baton_options options = {.size = offsetof(struct baton_options, settings),
                                    .node = "old",
                                    .settings = (const struct baton_setting *)1,
                                    .setting_count = SIZE_MAX};
    struct baton_election *election;
    struct baton_member leader;
    struct baton *baton = NULL;
    (void)state;

    assert_int_equal(baton_open(&baton, "memory:", &options, NULL), BATON_OK);
    election = campaign(baton, "e");
    assert_int_equal(baton_wait(election, -1, NULL), BATON_OK);
    assert_int_equal(baton_leader(election, &leader, NULL, NULL), BATON_OK);
    assert_string_equal(leader.id, "old");
    baton_close(baton);
}

static void a_newer_field_is_refused_only_if_it_is_set(void **state)
{
    struct {
        struct baton_options known;
        size_t newer;
    } options = {.known.size = sizeof(options)};
    struct baton_error error = {0};
    struct baton *baton = NULL;
    (void)state;

    assert_int_equal(baton_open(&baton, "memory:", &options.known, NULL), BATON_OK);
    baton_close(baton);
    options.newer = 1;
    assert_int_equal(baton_open(&baton, "memory:", &options.known, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "older"));
}

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
    (void)election;

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

static void count(struct baton_election *election, const struct baton_event *event, void *userdata)
{
    (void)election;
    (void)event;
    (*(atomic_int *)userdata)++;
}

static void a_slow_listener_is_told_what_it_missed_and_the_end(void **state)
{
    struct baton *baton = open_memory("a");
    struct baton_election *election = lead(baton, "e");
    struct slow slow = {0};
    atomic_int told = 0;
    /* A resignation would wait for it to drain. */
    uint32_t mask = BATON_EVENT_ALL & ~(uint32_t)BATON_EVENT_DRAIN;
    (void)state;

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
    (void)event;
    *(int *)userdata = baton_dispatch(baton_of(election));
}

/* Leading comes first, the event of it a moment later. */
static void dispatch_one(struct baton *baton)
{
    process_wait_readable(baton_fd(baton));
    while (baton_dispatch(baton) == 0) {
        pause_a_moment();
    }
}

static void one_thread_dispatches_at_a_time(void **state)
{
    struct baton *baton = open_memory("a");
    struct baton_election *election = lead(baton, "e");
    int inner = 0;
    (void)state;

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
    (void)state;

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
    (void)state;

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
    (void)state;

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
    (void)event;
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
    (void)state;

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
    (void)state;

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

    (void)election;
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
    (void)state;

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
    (void)event;
    *(atomic_int *)userdata = baton_leave(election, NULL);
}

/* It would free what runs, or wait for itself. */
static void a_listener_cannot_leave_its_election(void **state)
{
    struct leaving leaving = {.codes = {1, 1, 1}};
    struct baton *baton = open_memory("a");
    struct baton_election *election = lead(baton, "e");
    (void)state;

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
    (void)event;

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
    (void)state;

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
        assert_true(i < PROCESS_PATIENCE_MS);
        pause_a_moment();
    }
    baton_values_free(value, 1);
    baton_close(baton);
}

/* ---- Structs --------------------------------------------------------------------------------- */

/* <baton.h> promises it within a major version; as 64-bit machines lay them out. */
static void structs_without_a_size_field_keep_their_size(void **state)
{
    (void)state;
    if (sizeof(void *) != 8) {
        skip();
    }
    assert_int_equal(sizeof(struct baton_member), 288);
    assert_int_equal(sizeof(struct baton_error), 516);
    assert_int_equal(sizeof(struct baton_value), 32);
    assert_int_equal(sizeof(struct baton_setting), 16);
    assert_int_equal(offsetof(struct baton_event, text),
                     856); /* the last field that it began with */
}

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
    (void)state;

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
        assert_true(i < PROCESS_PATIENCE_MS);
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
    (void)baton;
    (void)channel;
    (void)data;
    (void)bytes;

    gate->entered = 1;
    await(&gate->open, 1);
}

static void await_queued(struct baton *baton, int least)
{
    int count = 0;

    for (int i = 0; count < least; i++) {
        assert_true(i < PROCESS_PATIENCE_MS);
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
    (void)baton;
    (void)value;
    (void)userdata;
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
    (void)state;

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
    (void)election;
    (void)event;
    ((struct parting *)userdata)->entered = 1;
}

/* Queues a hand-over for a loop that has other work, once the election has ended. */
static void resign_too_late(struct baton_election *election, const struct baton_event *event,
                            void *userdata)
{
    struct parting *parting = userdata;
    void *both[] = {election, parting};
    pthread_t thread;
    (void)event;

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
    (void)state;

    assert_int_equal(baton_subscribe(NULL, baton, "gate", wait_at_gate, &parting.gate, NULL), 0);
    assert_int_equal(
        baton_on(NULL, election, BATON_EVENT_STOPPED, BATON_ON_LOOP, see_the_end, &parting, NULL),
        BATON_OK);
    assert_int_equal(baton_once(NULL, election, BATON_EVENT_ACQUIRED, BATON_ON_DISPATCH,
                                resign_too_late, &parting, NULL),
                     BATON_OK);
    for (int i = 0; baton_dispatch(baton) == 0; i++) {
        assert_true(i < PROCESS_PATIENCE_MS);
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
    (void)state;

    baton_stop(baton);
    assert_int_equal(pthread_create(&thread, NULL, leave_it, election), 0);
    assert_int_equal(pthread_join(thread, &code), 0);
    assert_int_equal((int)(intptr_t)code, BATON_OK);
    baton_close(baton);
}

/* ---- Crashes --------------------------------------------------------------------------------- */

static volatile sig_atomic_t own_handler_ran;

static void own_handler(int number)
{
    (void)number;
    own_handler_ran = 1;
    _exit(42);
}

static int crash(void *with_own_handler)
{
    struct baton_options options = {.size = sizeof(options), .announces_crashes = true};
    struct baton *baton = NULL;

    if (with_own_handler) {
        (void)signal(SIGSEGV, own_handler);
    } else {
        (void)signal(SIGSEGV, SIG_DFL); /* a sanitizer's goes first */
    }
    if (baton_open(&baton, "memory:", &options, NULL) != BATON_OK) {
        return 1;
    }
    (void)raise(SIGSEGV);
    return 2;
}

static void a_crash_ends_as_it_would_have(void **state)
{
    bool yes = true;
    int status;
    (void)state;

    status = process_wait(process_fork(crash, NULL));
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
    status = process_wait(process_fork(crash, &yes));
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First: it forks, which a sanitizer forbids once there are threads. */
        cmocka_unit_test(a_crash_ends_as_it_would_have),
        cmocka_unit_test(a_struct_that_does_not_say_its_size_is_refused),
        cmocka_unit_test(a_program_with_an_older_header_leaves_the_newer_fields_out),
        cmocka_unit_test(a_newer_field_is_refused_only_if_it_is_set),
        cmocka_unit_test(a_listener_cannot_leave_its_election),
        cmocka_unit_test(on_the_loop_s_thread_nothing_waits_and_a_write_begins),
        cmocka_unit_test(an_unknown_provider_is_named_with_those_there_are),
        cmocka_unit_test(a_password_in_a_url_is_in_no_error),
        cmocka_unit_test(settings_beat_the_url),
        cmocka_unit_test(a_setting_that_the_provider_does_not_have_is_refused),
        cmocka_unit_test(a_memory_without_a_name_is_its_own),
        cmocka_unit_test(two_of_one_name_cannot_run_in_one_election),
        cmocka_unit_test(a_slow_listener_is_told_what_it_missed_and_the_end),
        cmocka_unit_test(one_thread_dispatches_at_a_time),
        cmocka_unit_test(what_waits_for_dispatch_goes_with_the_election),
        cmocka_unit_test(a_drain_that_nobody_ends_ends_with_its_time),
        cmocka_unit_test(who_dispatches_hears_of_the_drain_while_it_resigns),
        cmocka_unit_test(a_listener_that_is_dispatched_may_resign_but_not_wait),
        cmocka_unit_test(nobody_drains_for_a_member_that_there_is_not),
        cmocka_unit_test(a_leadership_that_ends_at_once_is_heard_of_before_it_ends),
        cmocka_unit_test(structs_without_a_size_field_keep_their_size),
        cmocka_unit_test(any_thread_may_call_anything),
        cmocka_unit_test(a_call_that_is_queued_behind_a_stop_does_not_begin),
        cmocka_unit_test(an_election_stays_for_a_hand_over_that_nobody_waits_for),
        cmocka_unit_test(after_a_stop_any_thread_may_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

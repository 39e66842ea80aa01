/* What every provider must do, told through <baton.h>: `test_conformance NAME` for each of the
 * table in providers.c. */
#include "provider/group.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct tested_provider *tested;

static int set_up(void **state)
{
    struct group *group = calloc(1, sizeof(*group));

    assert_non_null(group);
    group->provider = tested;
    group->own = tested->begin();
    *state = group;
    return 0;
}

static int tear_down(void **state)
{
    struct group *group = *state;

    for (int i = 0; i < GROUP_NODES; i++) {
        group_close(group, i);
    }
    group->provider->end(group->own);
    free(group);
    return 0;
}

/* ---- Electing -------------------------------------------------------------------------------- */

static void one_leads_and_all_know_it(void **state)
{
    struct group *group = *state;
    int leader;

    group_open_all(group);
    leader = group_leader(group);
    for (int i = 0; i < GROUP_NODES; i++) {
        struct baton_election *election = group->members[i].election;
        struct baton_member known = {0};
        uint64_t epoch = 0;
        GROUP_AWAIT(baton_leader(election, &known, &epoch, NULL) == BATON_OK &&
                    strcmp(known.name, group->members[leader].node) == 0);
        assert_int_equal(epoch, baton_epoch(group->members[leader].election));
        assert_int_equal(known.is_self, i == leader);
        assert_int_equal(baton_role(election) == BATON_ROLE_LEADER, i == leader);
        assert_int_equal(baton_lease_remaining(election) > 0, i == leader);
        assert_string_equal(baton_election_name(election), "race");
        assert_ptr_equal(baton_of(election), group->members[i].baton);
    }
    assert_true(baton_epoch(group->members[leader].election) > 0);
}

static void resigning_hands_over_with_a_greater_epoch(void **state)
{
    struct group *group = *state;
    int first;
    int second;

    group_open_all(group);
    first = group_leader(group);
    ASSERT_OK(baton_resign(group->members[first].election, BATON_TIMEOUT_DEFAULT, failure));
    second = group_leader_but(group, first);
    assert_true(baton_epoch(group->members[second].election) >
                baton_epoch(group->members[first].election));
    assert_int_equal(baton_resign(group->members[first].election, 0, NULL), BATON_ENOTLEADER);
}

static void passing_goes_to_the_one_that_is_named(void **state)
{
    struct group *group = *state;
    int leader;
    int heir;

    group_open_all(group);
    leader = group_leader(group);
    heir = (leader + 2) % GROUP_NODES;
    ASSERT_OK(baton_wait(group->members[heir].election, BATON_TIMEOUT_DEFAULT, failure));
    /* A follower that only just joined may not have caught up: then it is tried again. */
    GROUP_AWAIT(baton_pass(group->members[leader].election, group->members[heir].node,
                           BATON_TIMEOUT_DEFAULT, NULL) == BATON_OK);
    assert_int_equal(group_leader(group), heir);
}

static void passing_to_nobody_is_refused_and_nothing_changes(void **state)
{
    struct group *group = *state;
    struct baton_error error;
    int leader;

    group_open_all(group);
    leader = group_leader(group);
    assert_int_equal(baton_pass(group->members[leader].election, "stranger", 1000, &error),
                     BATON_EINVAL);
    assert_non_null(strstr(error.message, "stranger"));
    assert_true(baton_is_leader(group->members[leader].election));
}

static void stopping_the_leader_elects_another(void **state)
{
    struct group *group = *state;
    int first;
    uint64_t epoch;

    group_open_all(group);
    first = group_leader(group);
    epoch = baton_epoch(group->members[first].election);
    baton_stop(group->members[first].baton);
    baton_stop(group->members[first].baton); /* idempotent */
    assert_false(baton_is_leader(group->members[first].election));
    assert_int_equal(baton_role(group->members[first].election), BATON_ROLE_FOLLOWER);
    assert_int_equal(baton_resign(group->members[first].election, 0, NULL), BATON_ECLOSED);
    assert_int_equal(baton_wait_leadership(group->members[first].election, 1000, NULL),
                     BATON_ECLOSED);
    assert_true(baton_epoch(group->members[group_leader_but(group, first)].election) > epoch);
}

static void leaving_the_election_hands_over(void **state)
{
    struct group *group = *state;
    int first;

    group_open_all(group);
    first = group_leader(group);
    baton_leave(group->members[first].election);
    group->members[first].election = NULL;
    (void)group_leader(group);
}

static void who_is_cordoned_does_not_lead(void **state)
{
    struct group *group = *state;
    int first;
    int second;

    group_open_all(group);
    first = group_leader(group);
    ASSERT_OK(baton_cordon(group->members[first].election, failure));
    second = group_leader_but(group, first);
    ASSERT_OK(baton_resign(group->members[second].election, BATON_TIMEOUT_DEFAULT, failure));
    assert_int_not_equal(group_leader_but(group, second), first);
    ASSERT_OK(baton_uncordon(group->members[first].election, failure));
}

static void an_observer_knows_the_leader_and_never_is(void **state)
{
    struct group *group = *state;
    struct baton_member leader;

    group_open(group, 0, true, true);
    group_open(group, 1, true, false);
    group_open(group, 2, true, false);
    ASSERT_OK(baton_wait(group->members[0].election, BATON_TIMEOUT_DEFAULT, failure));
    ASSERT_OK(baton_leader(group->members[0].election, &leader, NULL, failure));
    assert_string_not_equal(leader.name, "n0");
    assert_int_equal(baton_epoch(group->members[0].election), 0);
}

static void epochs_grow_when_all_begin_anew(void **state)
{
    struct group *group = *state;
    uint64_t epoch = 0;

    for (int round = 0; round < 3; round++) {
        int leader;
        group_open_all(group);
        leader = group_leader(group);
        assert_true(baton_epoch(group->members[leader].election) > epoch);
        epoch = baton_epoch(group->members[leader].election);
        for (int i = 0; i < GROUP_NODES; i++) {
            group_close(group, i);
        }
    }
}

static void waiting_ends_with_the_timeout(void **state)
{
    struct group *group = *state;
    struct baton_error error;

    group_open(group, 0, true, true); /* nobody who may lead */
    assert_int_equal(baton_wait_leadership(group->members[0].election, 10, &error),
                     BATON_ETIMEDOUT);
    assert_non_null(strstr(error.message, "race"));
    assert_int_equal(baton_wait_leadership(group->members[0].election, 0, NULL), BATON_ETIMEDOUT);
}

static void leaderships_never_overlap_while_they_are_passed_around(void **state)
{
    struct group *group = *state;
    uint64_t epoch = 0;

    group_open_all(group);
    for (int round = 0; round < 20; round++) {
        int leader = group_leader(group);
        struct baton_election *election = group->members[leader].election;
        uint64_t now = baton_epoch(election);
        assert_true(now > epoch || round > 0);
        epoch = now;
        (void)baton_resign(election, BATON_TIMEOUT_DEFAULT, NULL);
        group_check_one(group);
    }
}

/* ---- Metadata -------------------------------------------------------------------------------- */

/* What member `asking` sees of member `number`; NULL: nothing. */
static bool sees(struct group *group, int asking, int number, const char *metadata)
{
    struct baton_member *members;
    size_t count;
    bool found = false;

    ASSERT_OK(baton_members(group->members[asking].election, &members, &count, failure));
    for (size_t i = 0; i < count; i++) {
        const char *seen = members[i].metadata ? members[i].metadata : "";
        if (strcmp(members[i].name, group->members[number].node) == 0) {
            found = metadata ? strstr(seen, metadata) != NULL : !strchr(seen, '"');
        }
    }
    baton_members_free(members);
    return found;
}

static void what_a_member_says_of_itself_can_change(void **state)
{
    struct group *group = *state;
    struct baton_error error;
    int code;

    group_open_all(group);
    code = baton_set_metadata(group->members[1].election, "{\"load\":80}", &error);
    if (code == BATON_ENOTSUP) {
        assert_non_null(strstr(error.message, group->provider->name));
        return;
    }
    assert_int_equal(code, BATON_OK);
    GROUP_AWAIT(sees(group, 0, 1, "\"load\":80"));
    assert_int_equal(baton_set_metadata(group->members[1].election, "80", &error), BATON_EINVAL);
    assert_true(sees(group, 0, 1, "\"load\":80"));
    ASSERT_OK(baton_set_metadata(group->members[1].election, NULL, failure));
    GROUP_AWAIT(sees(group, 0, 1, NULL));
}

/* ---- Refusing -------------------------------------------------------------------------------- */

static void wrong_calls_are_refused_with_the_value_that_is_wrong(void **state)
{
    struct group *group = *state;
    struct baton_campaign_options wrong = {.metadata = "[1]"};
    struct baton_election *election = NULL;
    struct baton_member leader;
    struct baton_error error;
    char name[BATON_NAME_MAX + 8];

    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    group_open(group, 0, false, false);
    assert_int_equal(baton_campaign(&election, group->members[0].baton, "", NULL, &error),
                     BATON_EINVAL);
    assert_int_equal(baton_campaign(&election, group->members[0].baton, name, NULL, &error),
                     BATON_EINVAL);
    assert_non_null(strstr(error.message, "xxxx"));
    assert_int_equal(baton_campaign(&election, group->members[0].baton, "race", &wrong, &error),
                     BATON_EINVAL);
    assert_non_null(strstr(error.message, "[1]"));
    assert_null(election);
    wrong = (struct baton_campaign_options){.observes = true};
    ASSERT_OK(baton_campaign(&election, group->members[0].baton, "race", &wrong, failure));
    assert_int_equal(baton_leader(election, &leader, NULL, &error), BATON_ENOENT);
    assert_int_equal(baton_resign(election, 0, &error), BATON_ENOTLEADER);
    assert_int_equal(baton_on(NULL, election, 0, BATON_ON_LOOP, NULL, NULL, &error), BATON_EINVAL);
    assert_int_equal(
        baton_campaign(&group->members[0].election, group->members[0].baton, "race", NULL, &error),
        BATON_EEXIST);
}

static void what_a_provider_lacks_it_says(void **state)
{
    struct group *group = *state;
    struct baton_value *value;
    struct baton_error error;

    group_open(group, 0, false, false);
    if (!tested->has_state) {
        assert_int_equal(baton_get(group->members[0].baton, "k", &value, &error), BATON_ENOTSUP);
        assert_non_null(strstr(error.message, tested->name));
        assert_int_equal(baton_put(group->members[0].baton, "k", "v", 1, 0, 0, &error),
                         BATON_ENOTSUP);
    }
    if (!tested->has_channels) {
        assert_int_equal(baton_publish(group->members[0].baton, "c", "m", 1, &error),
                         BATON_ENOTSUP);
    }
}

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
    (void)election;

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
    assert_int_equal(poll(&waits, 1, GROUP_PATIENCE_MS), 1);
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
    (void)election;
    (void)event;

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

static void resigning_waits_until_the_work_has_stopped(void **state)
{
    struct group *group = *state;
    struct work work = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct baton_election *election;
    pthread_t resigning;
    int leader;

    group_open_all(group);
    leader = group_leader(group);
    election = group->members[leader].election;
    ASSERT_OK(
        baton_on(NULL, election, BATON_EVENT_DRAIN, BATON_ON_THREAD, stop_work, &work, failure));
    assert_int_equal(pthread_create(&resigning, NULL, resign, election), 0);
    GROUP_AWAIT(work.heard.drained == 1);
    assert_int_equal(baton_resign(election, 0, NULL), BATON_EBUSY);
    (void)pthread_mutex_lock(&work.lock);
    work.may_stop = true;
    (void)pthread_cond_broadcast(&work.changed);
    (void)pthread_mutex_unlock(&work.lock);
    assert_int_equal(pthread_join(resigning, NULL), 0);
    /* A slow machine may have let the drain's time run out, which the lease bounds. */
    assert_int_equal(work.heard.out_of_order, 0);
    (void)group_leader_but(group, leader);
    group_close(group, leader); /* it may lead again, and drain, until then */
}

static void resign_from_the_loop(struct baton_election *election, const struct baton_event *event,
                                 void *userdata)
{
    (void)event;
    *(_Atomic int *)userdata = 1 + (baton_resign(election, 0, NULL) == BATON_OK);
    assert_int_equal(baton_wait_leadership(election, 1000, NULL),
                     baton_is_leader(election) ? BATON_OK : BATON_EBUSY);
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

/* ---- Members --------------------------------------------------------------------------------- */

static void the_list_of_members_has_all_of_them(void **state)
{
    struct group *group = *state;
    struct baton_member *members;
    size_t count = 0;
    size_t leaders = 0;
    size_t selves = 0;

    group_open_all(group);
    (void)group_leader(group);
    ASSERT_OK(baton_members(group->members[1].election, &members, &count, failure));
    for (size_t i = 0; i < count; i++) {
        leaders += members[i].role == BATON_ROLE_LEADER;
        selves += members[i].is_self && strcmp(members[i].name, "n1") == 0;
    }
    baton_members_free(members);
    assert_int_equal(count, GROUP_NODES);
    assert_int_equal(leaders, 1);
    assert_int_equal(selves, 1);
}

/* ---- Forking --------------------------------------------------------------------------------- */

static void a_forked_child_is_no_leader(void **state)
{
    struct group *group = *state;
    int leader;
    int status = 0;
    pid_t child;

    group_open_all(group);
    leader = group_leader(group);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct member *member = &group->members[leader];
        int wrong = baton_is_leader(member->election);
        wrong += baton_role(member->election) != BATON_ROLE_FOLLOWER;
        wrong += baton_resign(member->election, 0, NULL) != BATON_ECLOSED;
        wrong += baton_wait(member->election, 0, NULL) != BATON_ECLOSED;
        wrong += baton_dispatch(member->baton) != BATON_ECLOSED;
        baton_close(member->baton);
        _exit(wrong);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(baton_is_leader(group->members[leader].election));
}

/* ---- State ----------------------------------------------------------------------------------- */

static void values_are_set_compared_and_forgotten(void **state)
{
    struct group *group = *state;
    struct baton *one;
    struct baton *other;
    struct baton_value *value;
    uint64_t revision;

    if (!tested->has_state) {
        skip();
    }
    group_open_all(group);
    one = group->members[0].baton;
    other = group->members[1].baton;
    assert_int_equal(baton_get(one, "app/a", &value, NULL), BATON_ENOENT);
    ASSERT_OK(baton_put(one, "app/a", "1", 1, 0, 0, failure));
    assert_int_equal(baton_put(other, "app/a", "2", 1, 0, 0, NULL), BATON_ECONFLICT);
    ASSERT_OK(baton_get(other, "app/a", &value, failure));
    assert_string_equal(value->data, "1");
    assert_int_equal(value->bytes, 1);
    revision = value->revision;
    baton_values_free(value, 1);
    ASSERT_OK(baton_put(other, "app/a", "", 0, revision, 0, failure));
    assert_int_equal(baton_put(one, "app/a", "3", 1, revision, 0, NULL), BATON_ECONFLICT);
    ASSERT_OK(baton_get(one, "app/a", &value, failure));
    assert_true(value->revision > revision);
    assert_int_equal(value->bytes, 0);
    baton_values_free(value, 1);
    ASSERT_OK(baton_put(one, "app/a", NULL, 0, BATON_ANY_REVISION, 0, failure));
    assert_int_equal(baton_get(one, "app/a", &value, NULL), BATON_ENOENT);
    ASSERT_OK(baton_put(one, "app/short", "x", 1, 0, 20, failure));
    GROUP_AWAIT(baton_get(one, "app/short", &value, NULL) == BATON_ENOENT ||
                (baton_values_free(value, 1), false));
}

static void lists_are_sorted_and_of_the_prefix(void **state)
{
    struct group *group = *state;
    static const char *const keys[] = {"app/b", "app/a", "other", "app/c/d"};
    struct baton_value *values;
    struct baton *baton;
    size_t count;

    if (!tested->has_state) {
        skip();
    }
    group_open_all(group);
    baton = group->members[0].baton;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        ASSERT_OK(baton_put(baton, keys[i], keys[i], strlen(keys[i]), 0, 0, failure));
    }
    ASSERT_OK(baton_list(baton, "app/", &values, &count, failure));
    assert_int_equal(count, 3);
    assert_string_equal(values[0].key, "app/a");
    assert_string_equal(values[1].key, "app/b");
    assert_string_equal(values[2].data, "app/c/d");
    baton_values_free(values, count);
    ASSERT_OK(baton_list(baton, "nothing", &values, &count, failure));
    assert_int_equal(count, 0);
    baton_values_free(values, count);
}

struct watched {
    _Atomic int changes;
    _Atomic int deletions;
    _Atomic uint64_t revision;
    _Atomic int out_of_order;
};

static void watch(struct baton *baton, const struct baton_value *value, void *userdata)
{
    struct watched *watched = userdata;
    (void)baton;

    watched->out_of_order += value->revision < watched->revision;
    watched->revision = value->revision;
    watched->deletions += value->data == NULL;
    watched->changes += value->data != NULL;
}

static void watchers_hear_what_is_there_and_each_change(void **state)
{
    struct group *group = *state;
    struct watched watched = {0};
    struct baton *one;
    struct baton *other;

    if (!tested->has_state) {
        skip();
    }
    group_open_all(group);
    one = group->members[0].baton;
    other = group->members[1].baton;
    ASSERT_OK(baton_put(one, "app/there", "1", 1, 0, 0, failure));
    ASSERT_OK(baton_watch(other, "app/", watch, &watched, failure));
    assert_int_equal(baton_watch(other, "app/", watch, &watched, NULL), BATON_EEXIST);
    GROUP_AWAIT(watched.changes == 1);
    for (int i = 0; i < 50; i++) {
        ASSERT_OK(baton_put(one, "app/x", "2", 1, BATON_ANY_REVISION, 0, failure));
    }
    ASSERT_OK(baton_put(one, "elsewhere", "2", 1, BATON_ANY_REVISION, 0, failure));
    ASSERT_OK(baton_put(one, "app/x", NULL, 0, BATON_ANY_REVISION, 0, failure));
    ASSERT_OK(baton_put(one, "app/brief", "3", 1, 0, 20, failure));
    GROUP_AWAIT(watched.changes == 52 && watched.deletions == 2);
    assert_int_equal(watched.out_of_order, 0);
    baton_unwatch(other, "app/", watch, &watched);
    ASSERT_OK(baton_put(one, "app/x", "4", 1, 0, 0, failure));
    assert_int_equal(watched.changes, 52);
}

static void values_outlive_the_members(void **state)
{
    struct group *group = *state;
    struct baton_value *value;

    if (!tested->keeps_state) {
        skip();
    }
    for (int round = 0; round < 3; round++) {
        char text[32];
        group_open_all(group);
        if (round > 0) {
            ASSERT_OK(baton_get(group->members[round].baton, "app/kept", &value, failure));
            snprintf(text, sizeof(text), "round %d", round - 1);
            assert_string_equal(value->data, text);
            baton_values_free(value, 1);
        }
        snprintf(text, sizeof(text), "round %d", round);
        ASSERT_OK(baton_put(group->members[0].baton, "app/kept", text, strlen(text),
                            BATON_ANY_REVISION, 0, failure));
        for (int i = 0; i < GROUP_NODES; i++) {
            group_close(group, i);
        }
    }
}

static void what_is_too_big_is_refused_whole(void **state)
{
    struct group *group = *state;
    struct baton_error error;
    struct baton_value *value;
    size_t bytes = 64u << 20;
    char *data;

    if (!tested->has_state) {
        skip();
    }
    group_open_all(group);
    data = calloc(1, bytes);
    assert_non_null(data);
    assert_int_equal(baton_put(group->members[0].baton, "big", data, bytes, 0, 0, &error),
                     BATON_ETOOBIG);
    assert_int_equal(baton_get(group->members[0].baton, "big", &value, NULL), BATON_ENOENT);
    assert_int_equal(baton_put(group->members[0].baton, "odd", "v", 1, 0, -5, &error),
                     BATON_EINVAL);
    assert_non_null(strstr(error.message, "-5"));
    if (tested->has_channels) {
        assert_int_equal(baton_publish(group->members[0].baton, "big", data, bytes, &error),
                         BATON_ETOOBIG);
    }
    free(data);
}

/* ---- Channels -------------------------------------------------------------------------------- */

static void count_message(struct baton *baton, const char *channel, const void *data, size_t bytes,
                          void *userdata)
{
    (void)baton;
    if (strcmp(channel, "news") == 0 && bytes == 5 && memcmp(data, "hel\0o", 5) == 0) {
        (*(_Atomic int *)userdata)++;
    }
}

/* Publishing is at most once, and who has just subscribed may miss the first ones. */
static void messages_reach_all_who_subscribed(void **state)
{
    struct group *group = *state;
    _Atomic int heard[GROUP_NODES] = {0};
    int before;

    if (!tested->has_channels) {
        skip();
    }
    group_open_all(group);
    for (int i = 0; i < GROUP_NODES; i++) {
        ASSERT_OK(baton_subscribe(group->members[i].baton, i < 2 ? "news" : "olds", count_message,
                                  &heard[i], failure));
    }
    assert_int_equal(
        baton_subscribe(group->members[0].baton, "news", count_message, &heard[0], NULL),
        BATON_EEXIST);
    do {
        ASSERT_OK(baton_publish(group->members[2].baton, "news", "hel\0o", 5, failure));
        group_pause();
    } while (heard[0] == 0 || heard[1] == 0);
    baton_unsubscribe(group->members[1].baton, "news", count_message, &heard[1]);
    before = heard[1];
    for (int i = 0, first = heard[0]; heard[0] < first + 3; i++) {
        assert_true(i < GROUP_PATIENCE_MS);
        ASSERT_OK(baton_publish(group->members[2].baton, "news", "hel\0o", 5, failure));
        group_pause();
    }
    assert_int_equal(heard[1], before);
    assert_int_equal(heard[2], 0);
}

/* ---- Many ------------------------------------------------------------------------------------ */

static void many_elections_are_independent(void **state)
{
    struct group *group = *state;
    struct baton_election *elections[2][50];

    if (!tested->has_many_elections) {
        skip();
    }
    for (int node = 0; node < 2; node++) {
        group_open(group, node, false, false);
        for (int i = 0; i < 50; i++) {
            char name[32];
            snprintf(name, sizeof(name), "race-%d", i);
            ASSERT_OK(baton_campaign(&elections[node][i], group->members[node].baton, name, NULL,
                                     failure));
        }
    }
    for (int i = 0; i < 50; i++) {
        ASSERT_OK(baton_wait(elections[1][i], BATON_TIMEOUT_DEFAULT, failure));
        assert_true(baton_is_leader(elections[0][i]) != baton_is_leader(elections[1][i]));
        if (i % 2) {
            int leader = baton_is_leader(elections[1][i]);
            ASSERT_OK(baton_resign(elections[leader][i], BATON_TIMEOUT_DEFAULT, failure));
            GROUP_AWAIT(baton_is_leader(elections[!leader][i]));
        }
    }
}

int main(int argc, char **argv)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(one_leads_and_all_know_it),
        CASE(resigning_hands_over_with_a_greater_epoch),
        CASE(passing_goes_to_the_one_that_is_named),
        CASE(passing_to_nobody_is_refused_and_nothing_changes),
        CASE(stopping_the_leader_elects_another),
        CASE(leaving_the_election_hands_over),
        CASE(who_is_cordoned_does_not_lead),
        CASE(an_observer_knows_the_leader_and_never_is),
        CASE(epochs_grow_when_all_begin_anew),
        CASE(waiting_ends_with_the_timeout),
        CASE(leaderships_never_overlap_while_they_are_passed_around),
        CASE(wrong_calls_are_refused_with_the_value_that_is_wrong),
        CASE(what_a_provider_lacks_it_says),
        CASE(listeners_hear_in_order_on_the_thread_they_chose),
        CASE(the_descriptor_is_readable_while_events_wait),
        CASE(once_hears_one_event_and_off_none),
        CASE(a_listener_may_take_itself_off),
        CASE(resigning_waits_until_the_work_has_stopped),
        CASE(a_listener_on_the_loop_may_resign_but_not_wait),
        CASE(the_list_of_members_has_all_of_them),
        CASE(what_a_member_says_of_itself_can_change),
        CASE(a_forked_child_is_no_leader),
        CASE(values_are_set_compared_and_forgotten),
        CASE(lists_are_sorted_and_of_the_prefix),
        CASE(watchers_hear_what_is_there_and_each_change),
        CASE(values_outlive_the_members),
        CASE(what_is_too_big_is_refused_whole),
        CASE(messages_reach_all_who_subscribed),
        CASE(many_elections_are_independent),
    };

    for (tested = tested_providers; tested->name; tested++) {
        if (argc == 2 && strcmp(argv[1], tested->name) == 0) {
            return cmocka_run_group_tests_name(tested->name, tests, NULL, NULL);
        }
    }
    fprintf(stderr, "usage: %s PROVIDER, one of the table in providers.c\n", argv[0]);
    return 2;
}

/* Stopping from within what is heard: after each call, at each moment at which the loop tells the
 * program something, also while the disk fails. */
#include "provider/conformance.h"
#include "provider/raft/storage.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { QUIET_MS = 100, CALL_MS = 300 };

/* ---- A disk that fails ----------------------------------------------------------------------- */

static pthread_t loops_thread; /* of the member that stops */
static atomic_bool is_loop_known, is_disk_broken;

int __real_storage_write(struct storage *storage, const struct raft_write *write,
                         struct baton_error *reterr);
int __wrap_storage_write(struct storage *storage, const struct raft_write *write,
                         struct baton_error *reterr);

int __wrap_storage_write(struct storage *storage, const struct raft_write *write,
                         struct baton_error *reterr)
{
    return atomic_load(&is_disk_broken) && pthread_equal(pthread_self(), loops_thread)
               ? error_set(reterr, BATON_EIO, "the disk is broken")
               : __real_storage_write(storage, write, reterr);
}

/* ---- What is heard --------------------------------------------------------------------------- */

static struct baton *stopping;
static atomic_int heard, stops_at; /* counted from the call on; 0: they do not count yet */

static void hear(void)
{
    if (atomic_load(&stops_at) > 0 && atomic_fetch_add(&heard, 1) + 1 == atomic_load(&stops_at)) {
        baton_stop(stopping);
    }
}

static void on_event(struct baton_election *election, const struct baton_event *event,
                     void *userdata)
{
    hear();
}

static void on_message(struct baton *baton, const char *channel, const void *data, size_t bytes,
                       void *userdata)
{
    hear();
}

/* The first one says which thread is the loop's. */
static void on_change(struct baton *baton, const struct baton_value *value, void *userdata)
{
    if (!atomic_load(&is_loop_known)) {
        loops_thread = pthread_self();
        atomic_store(&is_loop_known, true);
    }
    hear();
}

/* ---- The calls ------------------------------------------------------------------------------- */

static void resign(const struct member *member)
{
    (void)baton_resign(member->election, CALL_MS, NULL);
}

static void pass(const struct member *member)
{
    (void)baton_pass(member->election, member->node[1] == '0' ? "n1" : "n0", CALL_MS, NULL);
}

static void cordon(const struct member *member)
{
    (void)baton_cordon(member->election, NULL);
}

static void leave(const struct member *member)
{
    (void)baton_leave(member->election, NULL);
}

static void describe(const struct member *member)
{
    (void)baton_set_metadata(member->election, "{\"a\": 1}", NULL);
}

static void remove_absent(const struct member *member)
{
    (void)baton_member_remove(member->election, "n2", CALL_MS, NULL);
}

static void put(const struct member *member)
{
    (void)baton_put(member->baton, "key", "other", 5, BATON_ANY_REVISION, 0, NULL);
}

static void publish(const struct member *member)
{
    (void)baton_publish(member->baton, "channel", "text", 4, NULL);
}

static void (*const calls[])(const struct member *member) = {
    resign, pass, cordon, leave, describe, remove_absent, put, publish};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

/* ---- A life ---------------------------------------------------------------------------------- */

static void listen_to(const struct member *member)
{
    atomic_store(&is_loop_known, false);
    ASSERT_OK(baton_put(member->baton, "key", "value", 5, BATON_ANY_REVISION, 0, failure));
    ASSERT_OK(baton_subscribe(NULL, member->baton, "channel", on_message, NULL, failure));
    ASSERT_OK(baton_watch(NULL, member->baton, "key", on_change, NULL, failure));
    ASSERT_OK(baton_on(NULL, member->election, UINT32_MAX, BATON_ON_LOOP, on_event, NULL, failure));
    GROUP_AWAIT(atomic_load(&is_loop_known));
}

/* Two members, of which the leader makes the call and stops at what it hears then as the `at`th.
 * Returns whether it has heard so much. */
static bool live(struct group *group, int call, bool breaks, int at)
{
    const struct member *leader;

    group_open(group, 0, true, false);
    group_open(group, 1, true, false);
    ASSERT_OK(baton_wait(group->members[1].election, BATON_TIMEOUT_DEFAULT, failure));
    leader = &group->members[group_leader(group)];
    listen_to(leader);
    stopping = leader->baton;
    atomic_store(&heard, 0);
    atomic_store(&stops_at, at);
    atomic_store(&is_disk_broken, breaks);
    calls[call](leader);
    for (int ms = 0; ms < QUIET_MS && atomic_load(&heard) < at; ms++) {
        group_pause();
    }
    atomic_store(&stops_at, 0);
    for (int i = 0; i < 2; i++) {
        group_close(group, i);
    }
    atomic_store(&is_disk_broken, false);
    return atomic_load(&heard) >= at;
}

/* True if it has the disk that may fail. */
static bool has_disk(void)
{
    return strncmp(tested->name, "raft", 4) == 0;
}

static void it_may_be_stopped_within_all_that_is_heard(void **state)
{
    struct group *group = *state;

    for (int call = 0; call < CALLS; call++) {
        for (int breaks = 0; breaks <= has_disk(); breaks++) {
            bool is_new = true;
            int at = 0;

            while (is_new) {
                is_new = live(group, call, breaks == 1, ++at);
                group->provider->end(group->own);
                group->own = group->provider->begin();
            }
            assert_true(at > 1 || calls[call] != resign); /* who resigns hears of it, and stops */
        }
    }
}

int conformance_stopping(void)
{
    const struct CMUnitTest tests[] = {CASE(it_may_be_stopped_within_all_that_is_heard)};

    return cmocka_run_group_tests_name("stopping", tests, NULL, NULL);
}

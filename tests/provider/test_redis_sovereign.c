/* The layout of seed 001: a lock that names its holder, a heartbeat for each process, and beside us
 * a process that knows no more than that. */
#include "integration/redis/server.h"
#include "provider/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LEASE_MS = 900, HEARTBEAT_MS = LEASE_MS + 5000 };

static struct server server;

static void *begin(void)
{
    server_init(&server);
    server_start(&server);
    server_tell(&server, "FLUSHALL");
    /* It has been there for long enough to have forgotten nothing. */
    SERVER_AWAIT(!server_says(&server, "INFO server", "uptime_in_seconds:0\r"));
    return &server;
}

static void url(void *own, int number, char *ret, size_t ret_bytes)
{
    snprintf(ret, ret_bytes,
             "redis://127.0.0.1:%d?layout=sovereign&lease=%dms&max-lease=%dms"
             "&check-interval=300ms&answer-timeout=500ms",
             server.port, LEASE_MS, LEASE_MS);
}

static void url_and(const char *more, char *ret, size_t ret_bytes)
{
    char plain[192];

    url(NULL, 0, plain, sizeof(plain));
    snprintf(ret, ret_bytes, "%s%s", plain, more);
}

static void end(void *own)
{
    server_fini(own);
}

static const struct tested_provider sovereign = {"sovereign", begin, url, end, true, true};

static int set_up(void **state)
{
    struct group *group = calloc(1, sizeof(*group));

    assert_non_null(group);
    group->provider = &sovereign;
    group->own = sovereign.begin();
    *state = group;
    return 0;
}

static int tear_down(void **state)
{
    struct group *group = *state;

    for (int i = 0; i < GROUP_NODES; i++) {
        group_close(group, i);
    }
    sovereign.end(group->own);
    free(group);
    return 0;
}

static long long now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static long long number(const char *command, const char *key)
{
    redisReply *reply = server_ask(&server, "%s %s", command, key);
    long long found = reply->type == REDIS_REPLY_INTEGER  ? reply->integer
                      : reply->type == REDIS_REPLY_STRING ? atoll(reply->str)
                                                          : -1;

    freeReplyObject(reply);
    return found;
}

static bool exists(const char *key)
{
    return number("EXISTS", key) == 1;
}

static void take_leader(char *ret, size_t ret_bytes)
{
    redisReply *reply = server_ask(&server, "GET race:leader");

    assert_int_equal(reply->type, REDIS_REPLY_STRING);
    snprintf(ret, ret_bytes, "%s", reply->str);
    freeReplyObject(reply);
}

static void the_keys_are_those_of_the_seed(void **state)
{
    struct group *group = *state;
    char id[BATON_NAME_MAX];
    char beat[BATON_NAME_MAX + 32];
    struct baton_member leader;

    group_open_all(group);
    ASSERT_OK(baton_leader(group->members[group_leader(group)].election, &leader, NULL, failure));
    take_leader(id, sizeof(id));
    assert_string_equal(id, leader.id);
    snprintf(beat, sizeof(beat), "race:heartbeat:%s", id);
    assert_in_range(number("PTTL", "race:leader"), 1, LEASE_MS);
    assert_in_range(number("PTTL", beat), 1, HEARTBEAT_MS);
    assert_in_range(number("GET", beat), now_ms() - HEARTBEAT_MS, now_ms());
    assert_false(exists("race:master"));
    assert_false(exists("race:heartbeat"));
}

static void a_leader_that_stops_leaves_neither_lock_nor_heartbeat(void **state)
{
    struct group *group = *state;
    char id[BATON_NAME_MAX];
    char beat[BATON_NAME_MAX + 32];

    group_open(group, 0, true, false);
    (void)group_leader(group);
    take_leader(id, sizeof(id));
    snprintf(beat, sizeof(beat), "race:heartbeat:%s", id);
    assert_true(exists(beat));
    group_close(group, 0);
    assert_false(exists("race:leader"));
    assert_false(exists(beat));
}

/* What an instance of the seed does: SET NX, then a heartbeat, then DEL. */
static void a_plain_instance_and_we_exclude_each_other(void **state)
{
    struct group *group = *state;
    redisReply *reply;

    server_tell(&server, "SET race:leader plain NX EX 60");
    server_tell(&server, "SETEX race:heartbeat:plain 65 %lld", now_ms());
    group_open(group, 0, true, false);
    ASSERT_OK(baton_wait(group->members[0].election, BATON_TIMEOUT_DEFAULT, failure));
    assert_false(baton_is_leader(group->members[0].election));
    server_tell(&server, "DEL race:leader race:heartbeat:plain");
    (void)group_leader(group);
    reply = server_ask(&server, "SET race:leader plain NX EX 60");
    assert_int_equal(reply->type, REDIS_REPLY_NIL);
    freeReplyObject(reply);
}

/* ---- Heartbeats ------------------------------------------------------------------------------ */

static void hear_error(struct baton_election *election, const struct baton_event *event,
                       void *userdata)
{
    if (strstr(event->error.message, "gave no heartbeat")) {
        ++*(_Atomic int *)userdata;
    }
}

static void a_stale_heartbeat_is_told_and_its_lock_respected(void **state)
{
    struct group *group = *state;
    _Atomic int told = 0;

    server_tell(&server, "SET race:leader plain NX EX 60");
    server_tell(&server, "SET race:heartbeat:plain %lld", now_ms());
    group_open(group, 0, true, false);
    ASSERT_OK(baton_on(NULL, group->members[0].election, BATON_EVENT_ERROR, BATON_ON_LOOP,
                       hear_error, (void *)&told, failure));
    server_tell(&server, "SET race:heartbeat:plain %lld", now_ms() - HEARTBEAT_MS - 1000);
    GROUP_AWAIT(told == 1);
    assert_false(baton_is_leader(group->members[0].election));
    assert_true(exists("race:leader"));
    server_tell(&server, "DEL race:leader");
    (void)group_leader(group);
    group_close(group, 0); /* it may tell of trouble until then */
}

static void a_new_leader_sweeps_what_is_stale_and_nothing_else(void **state)
{
    struct group *group = *state;
    long long now = now_ms();

    for (int i = 0; i < 300; i++) { /* more than one look of SCAN */
        server_tell(&server, "SET race:heartbeat:old-%d %lld", i, now - HEARTBEAT_MS - 1000);
    }
    server_tell(&server, "SET race:heartbeat:fresh %lld", now);
    server_tell(&server, "SET race:heartbeat:words hello");
    server_tell(&server, "LPUSH race:heartbeat:list x");
    server_tell(&server, "SET racy:heartbeat:old %lld", now - HEARTBEAT_MS - 1000);
    group_open(group, 0, true, false);
    (void)group_leader(group);
    for (int i = 0; i < 300; i++) {
        char key[64];
        snprintf(key, sizeof(key), "race:heartbeat:old-%d", i);
        GROUP_AWAIT(!exists(key));
    }
    assert_true(exists("race:heartbeat:fresh"));
    assert_true(exists("race:heartbeat:words"));
    assert_true(exists("race:heartbeat:list"));
    assert_true(exists("racy:heartbeat:old"));
}

static void a_name_is_no_pattern(void **state)
{
    struct group *group = *state;
    struct baton_election *election;

    server_tell(&server, "SET race:heartbeat:old %lld", now_ms() - HEARTBEAT_MS - 1000);
    server_tell(&server, "SET r*e:heartbeat:old %lld", now_ms() - HEARTBEAT_MS - 1000);
    group_open(group, 0, false, false);
    ASSERT_OK(baton_campaign(&election, group->members[0].baton, "r*e", NULL, failure));
    GROUP_AWAIT(baton_is_leader(election));
    GROUP_AWAIT(!exists("r*e:heartbeat:old"));
    assert_true(exists("race:heartbeat:old"));
}

static void a_start_may_be_delayed(void **state)
{
    struct group *group = *state;
    struct baton *late;
    struct baton_election *election;
    char delayed[256];

    /* The chance to begin within a test is none. */
    url_and("&start-delay=600s", delayed, sizeof(delayed));
    ASSERT_OK(baton_open(&late, delayed, NULL, failure));
    ASSERT_OK(baton_campaign(&election, late, "race", NULL, failure));
    group_open(group, 0, true, false);
    (void)group_leader(group);
    assert_false(baton_is_leader(election));
    baton_close(late);
    group_close(group, 0);
    /* While the registry's first answers come. */
    url_and("&start-delay=4ms", delayed, sizeof(delayed));
    for (int i = 0; i < 30; i++) {
        ASSERT_OK(baton_open(&late, delayed, NULL, failure));
        ASSERT_OK(baton_campaign(&election, late, "race", NULL, failure));
        GROUP_AWAIT(baton_is_leader(election));
        baton_close(late);
    }
}

/* ---- Settings -------------------------------------------------------------------------------- */

static void a_layout_that_does_not_exist_is_refused(void **state)
{
    struct baton *baton;
    struct baton_error error;

    assert_int_equal(baton_open(&baton, "redis://127.0.0.1:1?layout=etcd", NULL, &error),
                     BATON_EINVAL);
    assert_non_null(strstr(error.message, "\"etcd\""));
    assert_non_null(strstr(error.message, "sovereign"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_keys_are_those_of_the_seed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_leader_that_stops_leaves_neither_lock_nor_heartbeat,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_plain_instance_and_we_exclude_each_other, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_stale_heartbeat_is_told_and_its_lock_respected, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_new_leader_sweeps_what_is_stale_and_nothing_else, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_name_is_no_pattern, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_start_may_be_delayed, set_up, tear_down),
        cmocka_unit_test(a_layout_that_does_not_exist_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

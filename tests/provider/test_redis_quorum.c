/* An election on three independent real servers: any two of them are enough. */
#include "integration/redis/server.h"
#include "lib/process.h"
#include "provider/group.h"
#include "provider/witness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SERVERS = 3 };

static struct server servers[SERVERS];
static struct witnesses witnesses;
static char hosts[96];

static int begin(void **state)
{
    for (int i = 0; i < SERVERS; i++) {
        server_init(&servers[i]);
        server_start(&servers[i]);
    }
    snprintf(hosts, sizeof(hosts), "redis://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d",
             servers[0].port, servers[1].port, servers[2].port);
    return 0;
}

static int end(void **state)
{
    witnesses_end(&witnesses);
    for (int i = 0; i < SERVERS; i++) {
        server_fini(&servers[i]);
    }
    return 0;
}

static void url_of(char *ret, size_t ret_bytes, const char *query)
{
    snprintf(ret, ret_bytes, "%s?quorum=majority&guardian=off&%s", hosts, query);
}

#define QUICK "lease=600ms&max-lease=600ms&check-interval=200ms&answer-timeout=200ms&spread=100ms"

static void trust_all(void)
{
    for (int i = 0; i < SERVERS; i++) {
        server_trust(&servers[i], "race");
    }
}

static bool has_lock(int server)
{
    return server_says(&servers[server], "GET race:master", "-");
}

static bool somebody_leads(void)
{
    bool leads = false;

    for (int i = 0; i < WITNESS_NODES; i++) {
        leads = leads || witnesses.of[i]->leads;
    }
    return leads;
}

/* ---- What is shown --------------------------------------------------------------------------- */

static void open_two(struct member ret[2], const char *query)
{
    char url[512];

    url_of(url, sizeof(url), query);
    for (int i = 0; i < 2; i++) {
        ret[i] = (struct member){0};
        ASSERT_OK(baton_open(&ret[i].baton, url, NULL, failure));
        ASSERT_OK(baton_campaign(&ret[i].election, ret[i].baton, "race", NULL, failure));
        GROUP_AWAIT(i > 0 || baton_is_leader(ret[0].election));
    }
}

static void close_two(struct member members[2])
{
    baton_close(members[0].baton);
    baton_close(members[1].baton);
}

/* Twice: the first one may have been granted before whatever has happened. */
static void await_renewals(const struct member *member)
{
    for (int i = 0; i < 2; i++) {
        int64_t before = baton_lease_remaining(member->election);
        int64_t now;
        GROUP_AWAIT((now = baton_lease_remaining(member->election), now > before) ||
                    (before = now, false));
    }
}

#define LONG "lease=60s&max-lease=60s&heartbeat-interval=100ms&process-lifetime=30s"

static void a_minority_may_be_lost_and_another_once_it_is_back(void **state)
{
    struct member members[2];
    uint64_t epoch;

    trust_all();
    open_two(members, LONG);
    epoch = baton_epoch(members[0].election);
    server_kill(&servers[0]);
    await_renewals(&members[0]);
    server_start(&servers[0]); /* empty */
    server_trust(&servers[0], "race");
    SERVER_AWAIT(has_lock(0)); /* brought in again */
    server_kill(&servers[1]);
    await_renewals(&members[0]);
    assert_int_equal(baton_epoch(members[0].election), epoch);
    ASSERT_OK(baton_resign(members[0].election, BATON_TIMEOUT_DEFAULT, failure));
    GROUP_AWAIT(baton_is_leader(members[1].election));
    assert_true(baton_epoch(members[1].election) > epoch);
    close_two(members);
}

static void a_server_that_hangs_is_not_waited_for(void **state)
{
    struct member members[2];
    uint64_t epoch;

    trust_all();
    open_two(members, LONG "&answer-timeout=500ms");
    epoch = baton_epoch(members[0].election);
    assert_int_equal(kill(servers[2].pid, SIGSTOP), 0);
    await_renewals(&members[0]);
    assert_int_equal(baton_epoch(members[0].election), epoch);
    ASSERT_OK(baton_resign(members[0].election, BATON_TIMEOUT_DEFAULT, failure));
    GROUP_AWAIT(baton_is_leader(members[1].election));
    assert_int_equal(kill(servers[2].pid, SIGCONT), 0);
    SERVER_AWAIT(has_lock(2));
    close_two(members);
}

static void one_of_three_is_too_few(void **state)
{
    char url[512];
    uint64_t epoch;
    int leader;

    url_of(url, sizeof(url), QUICK);
    witnesses_start(&witnesses, url);
    leader = witnesses_await_leader(&witnesses, 0);
    epoch = witnesses.of[leader]->epoch;
    server_kill(&servers[1]);
    witness_kill(&witnesses, leader);
    leader = witnesses_await_leader(&witnesses, epoch);
    server_kill(&servers[2]);
    GROUP_AWAIT(!somebody_leads());
    epoch = witnesses.of[leader]->epoch;
    server_start(&servers[1]);
    (void)witnesses_await_leader(&witnesses, epoch);
    witnesses_check(&witnesses);
}

/* Nodes and servers end and come back, one at a time, some with the rest of a lease. */
static void whatever_ends_no_instant_has_two_leaders(void **state)
{
    char url[512];
    uint64_t epoch = 0;

    url_of(url, sizeof(url), QUICK);
    witnesses_start(&witnesses, url);
    for (int i = 0; i < 6; i++) {
        struct server *server = &servers[i % SERVERS];
        int leader = witnesses_await_leader(&witnesses, epoch);
        epoch = witnesses.of[leader]->epoch;
        server_kill(server);
        witness_kill(&witnesses, i % 2 ? leader : (leader + 1) % WITNESS_NODES);
        server_start(server);
        witness_start(&witnesses, i % 2 ? leader : (leader + 1) % WITNESS_NODES, url);
        if (i % 2 == 0) {
            assert_int_equal(kill(witnesses.pids[leader], SIGSTOP), 0);
            (void)witnesses_await_leader(&witnesses, epoch);
            assert_int_equal(kill(witnesses.pids[leader], SIGCONT), 0);
        }
    }
    (void)witnesses_await_leader(&witnesses, 0);
    witnesses_check(&witnesses);
}

/* Leases that no test waits for: the guardian of the leader that is killed tells all servers. */
static void a_guardian_releases_on_every_server(void **state)
{
    char url[512];
    uint64_t epoch;

    trust_all();
    snprintf(
        url, sizeof(url),
        "%s?quorum=majority&lease=600s&max-lease=600s&heartbeat-interval=5s&answer-timeout=500ms",
        hosts);
    for (int i = 0; i < 2; i++) {
        witness_start(&witnesses, i, url);
        GROUP_AWAIT(witnesses.of[0]->leads);
    }
    epoch = witnesses.of[0]->epoch;
    for (int i = 0; i < SERVERS; i++) {
        SERVER_AWAIT(has_lock(i) && server_says(&servers[i], "GET race:master_process", "-"));
    }
    server_kill(&servers[0]); /* what is left is enough */
    witness_kill(&witnesses, 0);
    assert_int_equal(witnesses_await_leader(&witnesses, epoch), 1);
    witnesses_check(&witnesses);
}

static uint64_t epoch_at(int server)
{
    redisReply *reply = server_ask(&servers[server], "HGET race:epoch epoch");
    uint64_t epoch = reply->str ? strtoull(reply->str, NULL, 10) : 0;

    freeReplyObject(reply);
    return epoch;
}

/* One server is far ahead: its epoch counts, and another has it on record too. */
static void the_epoch_is_the_greatest_and_most_have_it(void **state)
{
    char url[512];
    struct baton *baton;
    struct baton_election *election;
    uint64_t epoch;
    int on_record = 0;

    trust_all();
    server_tell(&servers[1], "HSET race:epoch epoch 4000000000000 holder nobody");
    server_kill(&servers[2]); /* so that both of the others are needed */
    url_of(url, sizeof(url), "lease=60s&max-lease=60s");
    ASSERT_OK(baton_open(&baton, url, NULL, failure));
    ASSERT_OK(baton_campaign(&election, baton, "race", NULL, failure));
    GROUP_AWAIT(baton_is_leader(election));
    epoch = baton_epoch(election);
    assert_true(epoch > 4000000000000);
    for (int i = 0; i < 2; i++) {
        on_record += epoch_at(i) >= epoch;
    }
    assert_int_equal(on_record, 2);
    baton_close(baton);
    for (int i = 0; i < 2; i++) {
        assert_false(has_lock(i)); /* given back everywhere */
    }
}

static void on_message(struct baton *baton, const char *channel, const void *data, size_t bytes,
                       void *userdata)
{
    ++*(_Atomic int *)userdata;
}

static size_t member_count(struct baton_election *election)
{
    struct baton_member *members = NULL;
    size_t count = 0;

    if (baton_members(election, &members, &count, NULL) == BATON_OK) {
        baton_members_free(members);
    }
    return count;
}

static void registry_and_channels_do_without_one_and_state_is_refused(void **state)
{
    char url[512];
    struct baton *batons[2];
    struct baton_election *elections[2];
    struct baton_error error;
    struct baton_value *value;
    _Atomic int came = 0;

    trust_all();
    url_of(url, sizeof(url), "lease=60s&max-lease=60s&heartbeat-interval=200ms");
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(baton_open(&batons[i], url, NULL, failure));
        ASSERT_OK(baton_campaign(&elections[i], batons[i], "race", NULL, failure));
    }
    GROUP_AWAIT(member_count(elections[0]) == 2);
    ASSERT_OK(baton_subscribe(NULL, batons[1], "news", on_message, (void *)&came, failure));
    GROUP_AWAIT(baton_publish(batons[0], "news", "x", 1, NULL) == BATON_OK && came > 0);
    server_kill(&servers[0]);
    came = 0;
    GROUP_AWAIT(baton_publish(batons[0], "news", "x", 1, NULL) == BATON_OK && came > 0);
    GROUP_AWAIT(member_count(elections[1]) == 2);
    assert_int_equal(baton_get(batons[0], "k", &value, &error), BATON_ENOTSUP);
    assert_non_null(strstr(error.message, "independent"));
    GROUP_AWAIT(baton_is_leader(elections[0]) || baton_is_leader(elections[1]));
    int leader = baton_is_leader(elections[0]) ? 0 : 1;
    ASSERT_OK(baton_resign(elections[leader], BATON_TIMEOUT_DEFAULT, failure));
    GROUP_AWAIT(baton_is_leader(elections[1 - leader]));
    baton_close(batons[0]);
    baton_close(batons[1]);
}

static void hear(struct baton_election *election, const struct baton_event *event, void *userdata)
{
    if (strstr(event->error.message, "same server")) {
        *(_Atomic bool *)userdata = true;
    }
}

/* By another name, which the URL cannot show. */
static void a_server_does_not_count_twice(void **state)
{
    char url[512];
    struct baton *baton;
    struct baton_election *election;
    _Atomic bool is_told = false;

    snprintf(url, sizeof(url),
             "redis://127.0.0.1:%d,127.0.0.2:%d,127.0.0.1:%d?quorum=majority&guardian=off&" QUICK,
             servers[0].port, servers[0].port, servers[1].port);
    ASSERT_OK(baton_open(&baton, url, NULL, failure));
    ASSERT_OK(baton_campaign(&election, baton, "race", NULL, failure));
    ASSERT_OK(baton_on(NULL, election, BATON_EVENT_ERROR, BATON_ON_LOOP, hear, (void *)&is_told,
                       failure));
    server_kill(&servers[0]);
    server_set(&servers[0], "bind", "127.0.0.1 127.0.0.2");
    server_start(&servers[0]);
    GROUP_AWAIT(is_told && baton_is_leader(election));
    server_kill(&servers[1]); /* what is left is one server */
    GROUP_AWAIT(!baton_is_leader(election));
    server_start(&servers[1]);
    GROUP_AWAIT(baton_is_leader(election));
    baton_close(baton);
}

static void a_url_that_cannot_be_safe_is_refused(void **state)
{
    static const struct {
        const char *url, *says;
    } rows[] = {{"redis://a,b,c", "quorum=majority"},
                {"redis://a,b?quorum=majority", "at least 3"},
                {"redis://a?quorum=majority", "at least 3"},
                {"redis://a,b,a:6379?quorum=majority", "twice"},
                {"redis://a,b,c?quorum=all", "must be majority"},
                {"redis://1,2,3,4,5,6,7,8,9,10?quorum=majority", "more than 9"}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct baton *baton;
        struct baton_error error = {0};
        assert_int_not_equal(baton_open(&baton, rows[i].url, NULL, &error), BATON_OK);
        if (!strstr(error.message, rows[i].says)) {
            fail_msg("%s: %s", rows[i].url, error.message);
        }
    }
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        CASE(a_minority_may_be_lost_and_another_once_it_is_back),
        CASE(a_server_that_hangs_is_not_waited_for),
        CASE(one_of_three_is_too_few),
        CASE(whatever_ends_no_instant_has_two_leaders),
        CASE(a_guardian_releases_on_every_server),
        CASE(the_epoch_is_the_greatest_and_most_have_it),
        CASE(registry_and_channels_do_without_one_and_state_is_refused),
        CASE(a_server_does_not_count_twice),
        CASE(a_url_that_cannot_be_safe_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

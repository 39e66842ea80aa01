/* wait-replicas: what the server grants counts once its replica has it, and not before. */
#include "integration/redis/server.h"
#include "provider/group.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { MANY = 50 };

static struct server master;
static struct server replica;

static void follow(void)
{
    server_tell(&replica, "REPLICAOF 127.0.0.1 %d", master.port);
    SERVER_AWAIT(server_says(&replica, "INFO replication", "master_link_status:up") &&
                 server_says(&master, "INFO replication", "state=online"));
}

static int begin(void **state)
{
    server_init(&master);
    server_set(&master, "repl-diskless-sync-delay", "0");
    server_start(&master);
    server_init(&replica);
    server_start(&replica);
    follow(); /* the first replica changes the name of the master's history */
    server_trust(&master, "race");
    for (int i = 0; i < MANY; i++) {
        char election[16];

        snprintf(election, sizeof(election), "race-%d", i);
        server_trust(&master, election);
    }
    return 0;
}

static int end(void **state)
{
    server_fini(&replica);
    server_fini(&master);
    return 0;
}

/* What an election's listener has heard. */
struct heard {
    _Atomic int refusals; /* too few replicas */
    _Atomic int acquired;
    _Atomic int lost;
};

static void hear(struct baton_election *election, const struct baton_event *event, void *userdata)
{
    struct heard *heard = userdata;

    if (event->type == BATON_EVENT_ERROR) {
        heard->refusals += strstr(event->error.message, "of wait-replicas=1 had the ") != NULL;
    }
    heard->acquired += event->type == BATON_EVENT_ACQUIRED;
    heard->lost += event->type == BATON_EVENT_LOST;
}

static struct baton *open_with(const char *query)
{
    struct baton *baton;
    char url[256];

    snprintf(url, sizeof(url), "redis://127.0.0.1:%d?guardian=off&wait-replicas=1&%s", master.port,
             query);
    ASSERT_OK(baton_open(&baton, url, NULL, failure));
    return baton;
}

static struct baton_election *campaign(struct baton *baton, const char *name, struct heard *heard)
{
    struct baton_election *election;

    ASSERT_OK(baton_campaign(&election, baton, name, NULL, failure));
    ASSERT_OK(baton_on(NULL, election, BATON_EVENT_ALL, BATON_ON_LOOP, hear, heard, failure));
    return election;
}

static bool has_lock(const struct server *server, const char *election)
{
    char command[64];

    snprintf(command, sizeof(command), "GET %s:master", election);
    return server_says(server, command, "-");
}

#define PATIENT "&wait-timeout=15s&answer-timeout=50s" /* however slow the machine is */

/* ---- What is shown --------------------------------------------------------------------------- */

static void a_leader_has_its_lock_on_the_replica(void **state)
{
    struct baton *baton = open_with("lease=60s&max-lease=60s&heartbeat-interval=50ms" PATIENT);
    struct heard heard = {0};
    struct baton_election *election = campaign(baton, "race", &heard);
    int64_t before;
    int64_t now;

    GROUP_AWAIT(baton_is_leader(election));
    assert_true(has_lock(&replica, "race")); /* without waiting for it */
    for (int i = 0; i < 3; i++) {
        before = baton_lease_remaining(election);
        GROUP_AWAIT((now = baton_lease_remaining(election), now > before) || (before = now, false));
    }
    assert_int_equal(heard.refusals, 0);
    baton_close(baton);
    assert_false(has_lock(&master, "race"));
}

static void without_its_replica_nobody_leads(void **state)
{
    struct heard heard = {0};
    struct baton *baton;
    struct baton_election *election;

    server_kill(&replica);
    baton = open_with("lease=60s&max-lease=60s&wait-timeout=20ms");
    election = campaign(baton, "race", &heard);
    GROUP_AWAIT(heard.refusals > 2);
    assert_int_equal(heard.acquired, 0);
    assert_false(baton_is_leader(election));
    server_start(&replica);
    follow();
    GROUP_AWAIT(baton_is_leader(election));
    assert_true(has_lock(&replica, "race"));
    baton_close(baton);
}

/* Its connection stands, as that of one that hangs or is cut off. */
static void a_lock_that_the_replica_does_not_have_is_given_back(void **state)
{
    struct heard heard = {0};
    struct baton *baton;
    struct baton_election *election;

    assert_int_equal(kill(replica.pid, SIGSTOP), 0);
    baton = open_with("lease=60s&max-lease=60s&wait-timeout=20ms");
    election = campaign(baton, "race", &heard);
    GROUP_AWAIT(heard.refusals > 0);
    assert_int_equal(heard.acquired, 0);
    assert_int_equal(baton_leave(election, NULL), BATON_OK);
    SERVER_AWAIT(!has_lock(&master, "race"));
    assert_int_equal(kill(replica.pid, SIGCONT), 0);
    baton_close(baton);
}

/* The lease goes on to its end, and no further. */
static void a_renewal_that_the_replica_does_not_have_does_not_count(void **state)
{
    struct baton *baton =
        open_with("lease=2s&max-lease=2s&heartbeat-interval=100ms&wait-timeout=20ms");
    struct heard heard = {0};
    struct baton_election *election = campaign(baton, "race", &heard);
    uint64_t epoch;

    GROUP_AWAIT(baton_is_leader(election));
    epoch = baton_epoch(election);
    assert_int_equal(kill(replica.pid, SIGSTOP), 0);
    GROUP_AWAIT(heard.lost == 1);
    assert_true(heard.refusals > 0);
    assert_false(baton_is_leader(election));
    assert_int_equal(heard.acquired, 1);
    assert_int_equal(kill(replica.pid, SIGCONT), 0);
    GROUP_AWAIT(baton_is_leader(election));
    assert_true(baton_epoch(election) > epoch);
    baton_close(baton);
}

static void many_elections_wait_together(void **state)
{
    struct baton *baton = open_with("lease=60s&max-lease=60s" PATIENT);
    struct baton_election *elections[MANY];
    struct heard heard = {0};

    for (int i = 0; i < MANY; i++) {
        char name[32];
        snprintf(name, sizeof(name), "race-%d", i);
        elections[i] = campaign(baton, name, &heard);
    }
    for (int i = 0; i < MANY; i++) {
        ASSERT_OK(baton_wait_leadership(elections[i], PATIENCE_MS, failure));
    }
    assert_true(has_lock(&replica, "race-49"));
    assert_int_equal(heard.refusals, 0);
    baton_close(baton);
}

/* While the answer is waited for the connection is lost, and with it what it wrote. */
static void a_server_that_ends_meanwhile_grants_nothing(void **state)
{
    struct heard heard = {0};
    struct baton *baton;
    struct baton_election *election;

    assert_int_equal(kill(replica.pid, SIGSTOP), 0);
    baton = open_with("lease=60s&max-lease=60s&wait-timeout=10s&answer-timeout=30s");
    election = campaign(baton, "race", &heard);
    SERVER_AWAIT(server_says(&master, "CLIENT LIST", "cmd=wait"));
    server_kill(&master);
    assert_int_equal(baton_leave(election, NULL), BATON_OK);
    assert_int_equal(heard.acquired, 0);
    assert_int_equal(kill(replica.pid, SIGCONT), 0);
    baton_close(baton);
}

static void what_cannot_hold_is_refused(void **state)
{
    static const struct {
        const char *query, *says;
    } rows[] = {{"wait-replicas=x", "wait-replicas: 'x'"},
                {"wait-replicas=-1", "from 0 to 16"},
                {"wait-replicas=1&wait-timeout=0", "wait-timeout"},
                {"wait-replicas=1&wait-timeout=2s", "answer-timeout >= 3 x wait-timeout"},
                {"quorum=majority&wait-replicas=1", "not with quorum=majority"}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct baton_error error = {0};
        struct baton *baton;
        char url[128];
        snprintf(url, sizeof(url), "redis://%s?%s", strstr(rows[i].query, "quorum") ? "a,b,c" : "a",
                 rows[i].query);
        assert_int_equal(baton_open(&baton, url, NULL, &error), BATON_EINVAL);
        if (!strstr(error.message, rows[i].says)) {
            fail_msg("%s: %s", url, error.message);
        }
    }
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        CASE(a_leader_has_its_lock_on_the_replica),
        CASE(without_its_replica_nobody_leads),
        CASE(a_lock_that_the_replica_does_not_have_is_given_back),
        CASE(a_renewal_that_the_replica_does_not_have_does_not_count),
        CASE(many_elections_wait_together),
        CASE(a_server_that_ends_meanwhile_grants_nothing),
        cmocka_unit_test(what_cannot_hold_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

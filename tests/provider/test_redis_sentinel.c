/* An election on a master that Sentinels choose: real ones, which really fail it over. */
#include "integration/redis/server.h"
#include "lib/process.h"
#include "provider/group.h"
#include "provider/witness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SERVERS = 3, SENTINELS = 3 };

static struct server servers[SERVERS];
static struct server sentinels[SENTINELS];
static struct witnesses witnesses;

/* ---- A service ------------------------------------------------------------------------------- */

static void url_of(char *ret, size_t ret_bytes, const char *service, const char *query)
{
    snprintf(ret, ret_bytes, "redis+sentinel://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/%s?%s",
             sentinels[0].port, sentinels[1].port, sentinels[2].port, service, query);
}

/* Three servers, the first of them the master, and three Sentinels that know each other. */
static void start_all(void)
{
    char port[12];

    for (int i = 0; i < SERVERS; i++) {
        server_init(&servers[i]);
        server_set(&servers[i], "repl-diskless-sync-delay", "0");
        server_start(&servers[i]);
        if (i > 0) {
            snprintf(port, sizeof(port), "%d", servers[0].port);
            server_tell(&servers[i], "REPLICAOF 127.0.0.1 %s", port);
            SERVER_AWAIT(server_says(&servers[i], "INFO replication", "master_link_status:up"));
        }
    }
    for (int i = 0; i < SENTINELS; i++) {
        server_init_sentinel(&sentinels[i], servers[0].port, 2, NULL);
        server_start(&sentinels[i]);
    }
    for (int i = 0; i < SENTINELS; i++) {
        SERVER_AWAIT(server_number(&sentinels[i], "SENTINEL MASTER ours", "num-slaves") ==
                         SERVERS - 1 &&
                     server_number(&sentinels[i], "SENTINEL MASTER ours", "num-other-sentinels") ==
                         SENTINELS - 1);
    }
}

static int set_up(void **state)
{
    memset(servers, 0, sizeof(servers));
    memset(sentinels, 0, sizeof(sentinels));
    return 0;
}

static int tear_down(void **state)
{
    witnesses_end(&witnesses);
    for (int i = 0; i < SENTINELS; i++) {
        server_fini(&sentinels[i]);
    }
    for (int i = 0; i < SERVERS; i++) {
        server_fini(&servers[i]);
    }
    return 0;
}

/* The number of the server that one more than `other` calls its master; -1: not yet. */
static int master_but(int other)
{
    long port = 0;
    redisReply *reply = server_ask(&sentinels[1], "SENTINEL GET-MASTER-ADDR-BY-NAME ours");

    if (reply->type == REDIS_REPLY_ARRAY) {
        port = strtol(reply->element[1]->str, NULL, 10);
    }
    freeReplyObject(reply);
    for (int i = 0; i < SERVERS; i++) {
        if (i != other && servers[i].port == port &&
            server_says(&servers[i], "INFO replication", "role:master")) {
            return i;
        }
    }
    return -1;
}

static int await_master_but(int other)
{
    int master = -1;

    SERVER_AWAIT((master = master_but(other)) >= 0);
    return master;
}

static uint64_t epoch_at(const struct server *server)
{
    redisReply *reply = server_ask(server, "HGET race:epoch epoch");
    uint64_t epoch = reply->str ? strtoull(reply->str, NULL, 10) : 0;

    freeReplyObject(reply);
    return epoch;
}

static long long members_at(const struct server *server)
{
    redisReply *reply = server_ask(server, "HLEN race:processes");
    long long count = reply->integer;

    freeReplyObject(reply);
    return count;
}

/* The record of the election has the history that this server has now. */
static bool is_trusted(const struct server *server)
{
    redisReply *info = server_ask(server, "INFO replication");
    char *at = strstr(info->str, "master_replid:");
    bool is;

    assert_non_null(at);
    at += strlen("master_replid:");
    at[strcspn(at, "\r")] = '\0';
    is = server_says(server, "HGET race:epoch server", at);
    freeReplyObject(info);
    return is;
}

/* Servers, Sentinels and witnesses, one of whom leads: its number. ret_url: theirs. */
static int start_all_with_witnesses(char *ret_url, size_t ret_bytes)
{
    start_all();
    url_of(ret_url, ret_bytes, "ours",
           "lease=600ms&max-lease=600ms&check-interval=200ms&answer-timeout=300ms&guardian=off");
    witnesses_start(&witnesses, ret_url);
    return witnesses_await_leader(&witnesses, 0);
}

/* ---- Failovers ------------------------------------------------------------------------------- */

static void the_election_survives_its_master(void **state)
{
    char url[512];
    uint64_t epoch;
    int leader;
    int master;

    leader = start_all_with_witnesses(url, sizeof(url));
    epoch = witnesses.of[leader]->epoch;

    server_kill(&servers[0]);
    master = await_master_but(0);
    leader = witnesses_await_leader(&witnesses, epoch);
    epoch = witnesses.of[leader]->epoch;
    assert_true(server_says(&servers[master], "GET race:master", "-"));

    witness_kill(&witnesses, leader); /* beside the failover another fault */
    witness_start(&witnesses, leader, url);
    (void)witnesses_await_leader(&witnesses, epoch);
    witnesses_check(&witnesses);
}

/* The master dies, its replicas have missed the lock, and whoever holds it hears of nothing: it
 * leads to the end of its lease. Its followers reach the new master long before that. */
static void a_replica_that_missed_the_lock_grants_none_beside_it(void **state)
{
    char url[512];
    char direct[128];
    uint64_t epoch;

    start_all();
    server_trust(&servers[0], "race");
    snprintf(direct, sizeof(direct), "redis://127.0.0.1:%d?lease=4s&max-lease=4s&guardian=off",
             servers[0].port);
    witness_start(&witnesses, 0, direct);
    (void)witnesses_await_leader(&witnesses, 0);
    epoch = witnesses.of[0]->epoch;
    url_of(url, sizeof(url), "ours",
           "lease=4s&max-lease=4s&check-interval=200ms&guardian=off&spread=100ms");
    witness_start(&witnesses, 1, url);
    witness_start(&witnesses, 2, url);
    SERVER_AWAIT(members_at(&servers[0]) == WITNESS_NODES);
    for (int i = 1; i < SERVERS; i++) {
        SERVER_AWAIT(server_says(&servers[i], "GET race:master", "-"));
        server_tell(&servers[i], "CONFIG SET replica-read-only no");
        server_tell(&servers[i], "DEL race:master race:epoch");
    }
    server_kill(&servers[0]);
    assert_int_not_equal(witnesses_await_leader(&witnesses, epoch), 0);
    witnesses_check(&witnesses);
}

/* The old master is well and for some seconds still a master: nobody may lead there too. */
static void a_planned_failover_is_followed(void **state)
{
    char url[512];
    int leader;
    int master;
    uint64_t epoch;

    leader = start_all_with_witnesses(url, sizeof(url));
    epoch = witnesses.of[leader]->epoch;
    SERVER_AWAIT(server_says(&sentinels[0], "SENTINEL FAILOVER ours", "OK"));
    master = await_master_but(0);
    SERVER_AWAIT(is_trusted(&servers[master])); /* somebody has it, and renews it there */
    witness_kill(&witnesses, witnesses_await_leader(&witnesses, epoch - 1));
    epoch = epoch_at(&servers[master]);
    (void)witnesses_await_leader(&witnesses, epoch);
    SERVER_AWAIT(server_says(&servers[0], "INFO replication", "role:slave"));
    (void)witnesses_await_leader(&witnesses, epoch);
    witnesses_check(&witnesses);
}

/* ---- The guardian ---------------------------------------------------------------------------- */

struct program {
    const char *node;
    const char *url;
    char folder[160];
};

static int baton_main(void *userdata)
{
    struct program *program = userdata;

    execl(BATON_PROGRAM, "baton", "run", "--provider", program->url, "--election", "race", "--node",
          program->node, "--data", program->folder, "--", "sleep", "1000", (char *)NULL);
    return 127;
}

static pid_t start_program(const char *node, const char *url)
{
    struct program program = {.node = node, .url = url};

    snprintf(program.folder, sizeof(program.folder), "%s/%s", servers[0].folder, node);
    return process_fork(baton_main, &program);
}

/* Leases that no test waits for: the leader keeps its own through the failover, and when it is
 * killed its guardian gives it back to the master of today. */
static void a_guardian_releases_to_the_master_of_today(void **state)
{
    char url[512];
    char first[64];
    redisReply *reply;
    pid_t child;
    int master;

    start_all();
    server_trust(&servers[0], "race");
    url_of(url, sizeof(url), "ours",
           "lease=600s&max-lease=600s&heartbeat-interval=1s&answer-timeout=500ms");
    child = start_program("g", url);
    SERVER_AWAIT(server_says(&servers[0], "HVALS race:processes", "\"role\":\"master\""));
    reply = server_ask(&servers[0], "GET race:master");
    snprintf(first, sizeof(first), "%s", reply->str);
    freeReplyObject(reply);
    SERVER_AWAIT(server_says(&servers[1], "GET race:master", first) &&
                 server_says(&servers[2], "GET race:master", first));

    server_kill(&servers[0]);
    master = await_master_but(0);
    SERVER_AWAIT(is_trusted(&servers[master])); /* renewed there */
    assert_true(server_says(&servers[master], "GET race:master", first));
    process_end(child);
    SERVER_AWAIT(!server_says(&servers[master], "GET race:master", first));
    child = start_program("h", url);
    SERVER_AWAIT(server_says(&servers[master], "GET race:master", "-"));
    process_end(child);
}

/* ---- What goes wrong ------------------------------------------------------------------------- */

struct heard {
    _Atomic bool is_there;
    char message[BATON_ERROR_MESSAGE_MAX];
    const char *wanted;
};

static void hear(struct baton_election *election, const struct baton_event *event, void *userdata)
{
    struct heard *heard = userdata;

    if (!heard->is_there) {
        snprintf(heard->message, sizeof(heard->message), "%s", event->error.message);
        heard->is_there = strstr(heard->message, heard->wanted) != NULL;
    }
}

static struct baton *open_listening(const char *url, struct heard *heard)
{
    struct baton *baton;
    struct baton_election *election;

    ASSERT_OK(baton_open(&baton, url, NULL, failure));
    ASSERT_OK(baton_campaign(&election, baton, "race", NULL, failure));
    ASSERT_OK(baton_on(NULL, election, BATON_EVENT_ERROR, BATON_ON_LOOP, hear, heard, failure));
    return baton;
}

/* Waits until an error event has these words. One trouble is told once, and that may be before
 * anybody listens: then from the beginning. */
static void expect(const char *url, const char *wanted)
{
    struct heard heard = {.wanted = wanted};
    struct baton *baton = open_listening(url, &heard);

    for (int looks = 1; !heard.is_there; looks++) {
        if (looks % 1000 == 0) {
            baton_close(baton);
            if (looks > PATIENCE_MS / 5) {
                fail_msg("no \"%s\"; the latest: %s", wanted, heard.message);
            }
            baton = open_listening(url, &heard);
        }
        server_pause();
    }
    baton_close(baton);
}

static void an_unknown_service_is_named(void **state)
{
    char url[512];

    start_all();
    url_of(url, sizeof(url), "theirs", "guardian=off");
    expect(url, "knows no service \"theirs\"");
}

static void sentinels_that_do_not_answer_are_named(void **state)
{
    char url[512];

    for (int i = 0; i < SENTINELS; i++) {
        sentinels[i].port = process_free_port();
    }
    url_of(url, sizeof(url), "ours", "guardian=off");
    expect(url, "no Sentinel of service \"ours\" answers (3 asked)");
}

/* Everybody has a password, and not the same; the first Sentinel is not there. */
static void sentinels_and_server_have_passwords_of_their_own(void **state)
{
    char url[512];
    struct baton *baton;
    struct baton_election *election;

    server_init(&servers[0]);
    server_set(&servers[0], "requirepass", "eins");
    server_start(&servers[0]);
    server_init_sentinel(&sentinels[1], servers[0].port, 1,
                         "sentinel auth-pass ours eins\nrequirepass zwei");
    server_start(&sentinels[1]);
    sentinels[0].port = process_free_port();
    sentinels[2].port = process_free_port();

    url_of(url, sizeof(url), "ours", "guardian=off");
    expect(url, "sentinel-password");
    url_of(url, sizeof(url), "ours", "guardian=off&sentinel-password=drei");
    expect(url, "WRONGPASS");
    url_of(url, sizeof(url), "ours", "guardian=off&sentinel-password=zwei");
    expect(url, "NOAUTH");
    snprintf(url, sizeof(url),
             "redis+sentinel://:eins@127.0.0.1:%d,127.0.0.1:%d/ours/2?sentinel-password=zwei&"
             "guardian=off&lease=600ms&max-lease=600ms",
             sentinels[0].port, sentinels[1].port);
    ASSERT_OK(baton_open(&baton, url, NULL, failure));
    ASSERT_OK(baton_campaign(&election, baton, "race", NULL, failure));
    GROUP_AWAIT(baton_is_leader(election));
    baton_close(baton);
}

/* What a Sentinel says may be out of date: a replica is not taken for the master. */
static void a_replica_is_not_taken_for_the_master(void **state)
{
    char url[512];
    struct baton *baton;
    struct baton_election *election;

    server_init(&servers[0]);
    server_start(&servers[0]);
    server_init_sentinel(&sentinels[0], servers[0].port, 1, NULL);
    server_start(&sentinels[0]);
    sentinels[1].port = process_free_port();
    sentinels[2].port = process_free_port();
    server_tell(&servers[0], "REPLICAOF 127.0.0.1 %d", process_free_port());
    url_of(url, sizeof(url), "ours",
           "guardian=off&lease=600ms&max-lease=600ms&answer-timeout=300ms");
    expect(url, "is a replica");
    ASSERT_OK(baton_open(&baton, url, NULL, failure));
    ASSERT_OK(baton_campaign(&election, baton, "race", NULL, failure));
    server_tell(&servers[0], "REPLICAOF NO ONE");
    GROUP_AWAIT(baton_is_leader(election));
    baton_close(baton);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(the_election_survives_its_master),
        CASE(a_replica_that_missed_the_lock_grants_none_beside_it),
        CASE(a_planned_failover_is_followed),
        CASE(a_guardian_releases_to_the_master_of_today),
        CASE(an_unknown_service_is_named),
        CASE(sentinels_that_do_not_answer_are_named),
        CASE(sentinels_and_server_have_passwords_of_their_own),
        CASE(a_replica_is_not_taken_for_the_master),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

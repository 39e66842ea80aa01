/* Elections on a real Redis Cluster of three nodes, whose slots move and whose nodes die. */
#include "integration/redis/certificates.h"
#include "integration/redis/server.h"
#include "lib/process.h"
#include "net/redis/cluster.h"
#include "provider/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NODES = 3 };

static struct server nodes[NODES];
static char ids[NODES][48];
static int ports[NODES];
static char folder[128]; /* of the certificates; "": in the clear */

/* Of member and guardian: leases that no test waits for. */
#define LONG "lease=600s&max-lease=600s&heartbeat-interval=5s"

static void write_url(char ret[512], int node, const char *query)
{
    if (folder[0]) {
        snprintf(ret, 512, "rediss://127.0.0.1:%d?ca=%s/ca.crt&%s", ports[node], folder, query);
    } else {
        snprintf(ret, 512, "redis://127.0.0.1:%d?%s", ports[node], query);
    }
}

/* ---- A cluster ------------------------------------------------------------------------------- */

static void set_number(struct server *server, const char *name, int number)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", number);
    server_set(server, name, text);
}

static bool is_whole(const struct server *node)
{
    return server_says(node, "CLUSTER INFO", "cluster_state:ok") &&
           server_says(node, "CLUSTER INFO", "cluster_known_nodes:3");
}

static int begin(void **state)
{
    static const int first[] = {0, 5461, 10923, CLUSTER_SLOTS};
    int bus[NODES];

    for (int i = 0; i < NODES; i++) {
        redisReply *id;
        bus[i] = process_free_port();
        server_init(&nodes[i]);
        server_set(&nodes[i], "cluster-enabled", "yes");
        set_number(&nodes[i], "cluster-port", bus[i]);
        server_set(&nodes[i], "cluster-node-timeout", "1000");
        ports[i] = nodes[i].port;
        if (folder[0]) {
            ports[i] = certificates_serve(&nodes[i], folder, "right", "no");
            server_set(&nodes[i], "tls-cluster", "yes");
        }
        server_start(&nodes[i]);
        server_tell(&nodes[i], "CLUSTER ADDSLOTSRANGE %d %d", first[i], first[i + 1] - 1);
        server_tell(&nodes[i], "CLUSTER SET-CONFIG-EPOCH %d", i + 1);
        id = server_ask(&nodes[i], "CLUSTER MYID");
        snprintf(ids[i], sizeof(ids[i]), "%s", id->str);
        freeReplyObject(id);
    }
    for (int i = 1; i < NODES; i++) {
        server_tell(&nodes[0], "CLUSTER MEET 127.0.0.1 %d %d", ports[i], bus[i]);
    }
    for (int i = 0; i < NODES; i++) {
        SERVER_AWAIT(is_whole(&nodes[i]));
    }
    return 0;
}

/* Its nodes prove who they are, to each other too. */
static int begin_secured(void **state)
{
    certificates_make(folder, sizeof(folder));
    return begin(state);
}

static int end(void **state)
{
    for (int i = 0; i < NODES; i++) {
        server_fini(&nodes[i]);
    }
    if (folder[0]) {
        process_remove_folder(folder);
        folder[0] = '\0';
    }
    return 0;
}

static unsigned slot_of(const char *name)
{
    return redis_cluster_slot(name, strlen(name));
}

/* The node that has this slot to begin with. */
static int node_of(const char *name)
{
    unsigned slot = slot_of(name);

    return slot <= 5460 ? 0 : slot <= 10922 ? 1 : 2;
}

/* "{0}", "{1}", …: the first that lies on this node. */
static void name_on(int node, char ret[16])
{
    for (int i = 0;; i++) {
        snprintf(ret, 16, "{%d}", i);
        if (node_of(ret) == node) {
            return;
        }
    }
}

static bool has_key(const struct server *server, const char *election)
{
    redisReply *reply = server_ask(server, "EXISTS %s:master", election);
    bool has = reply->type == REDIS_REPLY_INTEGER && reply->integer == 1;

    freeReplyObject(reply);
    return has;
}

/* Whoever leads enters that into the registry once it knows. */
static bool is_registered(const struct server *server, const char *election)
{
    redisReply *reply = server_ask(server, "EXISTS %s:master_process", election);
    bool is = reply->type == REDIS_REPLY_INTEGER && reply->integer == 1;

    freeReplyObject(reply);
    return is;
}

/* ---- Members --------------------------------------------------------------------------------- */

struct heard {
    _Atomic bool is_there;
    const char *_Atomic wanted;
};

static struct heard heard;

static void hear(struct baton_election *election, const struct baton_event *event, void *userdata)
{
    if (heard.wanted && strstr(event->error.message, heard.wanted)) {
        heard.is_there = true;
    }
}

/* From now on it is listened for. */
static void want_error(const char *wanted)
{
    heard.wanted = wanted;
    heard.is_there = false;
}

static void open_at(struct member *member, int node, const char *query)
{
    char more[256];
    char url[512];

    snprintf(more, sizeof(more), "guardian=off&%s", query);
    write_url(url, node, more);
    *member = (struct member){0};
    ASSERT_OK(baton_open(&member->baton, url, NULL, failure));
}

static void campaign(struct member *member, const char *name)
{
    ASSERT_OK(baton_campaign(&member->election, member->baton, name, NULL, failure));
    ASSERT_OK(
        baton_on(NULL, member->election, BATON_EVENT_ERROR, BATON_ON_LOOP, hear, NULL, failure));
}

static void await_renewal(const struct member *member)
{
    int64_t before = baton_lease_remaining(member->election);
    int64_t now;

    GROUP_AWAIT((now = baton_lease_remaining(member->election), now > before) ||
                (before = now, false));
}

/* ---- What is shown --------------------------------------------------------------------------- */

static void a_key_has_the_slot_that_the_cluster_says(void **state)
{
    static const char *const keys[] = {"foo", "{foo}:master", "a{}b", "a{b}c{d}", "{", "}{", ""};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        redisReply *reply = server_ask(&nodes[0], "CLUSTER KEYSLOT %s", keys[i]);
        assert_int_equal(reply->integer, slot_of(keys[i]));
        freeReplyObject(reply);
    }
}

static void on_message(struct baton *baton, const char *channel, const void *data, size_t bytes,
                       void *userdata)
{
    *(_Atomic int *)userdata = 1;
}

static void on_change(struct baton *baton, const struct baton_value *value, void *userdata)
{
    *(_Atomic int *)userdata = value->data ? 1 : 2;
}

/* Two members that know different nodes, an election on each node, state and messages. */
static void whichever_node_is_known_all_are_used(void **state)
{
    struct member one, other;
    struct baton_election *elections[NODES];
    struct baton_value *value;
    _Atomic int has_come = 0;
    _Atomic int has_changed = 0;
    size_t count;

    open_at(&one, 0, "lease=60s&max-lease=60s");
    open_at(&other, 2, "lease=60s&max-lease=60s&node=other");
    for (int i = 0; i < NODES; i++) {
        char name[16];
        name_on(i, name);
        server_trust(&nodes[i], name);
        ASSERT_OK(baton_campaign(&elections[i], one.baton, name, NULL, failure));
        GROUP_AWAIT(baton_is_leader(elections[i]));
        assert_true(has_key(&nodes[i], name));
        campaign(&other, name);
        /* Refused until it has been heard of: who knows of nobody else leads again soon. */
        GROUP_AWAIT(baton_pass(elections[i], "other", 1000, NULL) == BATON_OK);
        GROUP_AWAIT(baton_is_leader(other.election));
    }
    ASSERT_OK(baton_subscribe(NULL, other.baton, "news", on_message, (void *)&has_come, failure));
    GROUP_AWAIT(baton_publish(one.baton, "news", "x", 1, NULL) == BATON_OK && has_come != 0);
    ASSERT_OK(baton_watch(NULL, other.baton, "k", on_change, (void *)&has_changed, failure));
    ASSERT_OK(baton_put(one.baton, "k1", "v", 1, 0, 0, failure));
    GROUP_AWAIT(has_changed == 1);
    ASSERT_OK(baton_list(other.baton, "k", &value, &count, failure));
    assert_int_equal(count, 1);
    baton_values_free(value, count);
    ASSERT_OK(baton_put(one.baton, "k1", NULL, 0, BATON_ANY_REVISION, 0, failure));
    GROUP_AWAIT(has_changed == 2);
    baton_close(one.baton);
    baton_close(other.baton);
}

static void set_slot(unsigned slot, int target)
{
    /* The new one first, so that nobody is sent to and fro. */
    server_tell(&nodes[target], "CLUSTER SETSLOT %d NODE %s", (int)slot, ids[target]);
    for (int i = 0; i < NODES; i++) {
        server_tell(&nodes[i], "CLUSTER SETSLOT %d NODE %s", (int)slot, ids[target]);
    }
}

static void migrate_keys(unsigned slot, int source, int target)
{
    redisReply *keys = server_ask(&nodes[source], "CLUSTER GETKEYSINSLOT %d 1000", (int)slot);

    assert_true(keys->elements > 0);
    for (size_t i = 0; i < keys->elements; i++) {
        server_tell(&nodes[source], "MIGRATE 127.0.0.1 %d %s 0 5000", nodes[target].port,
                    keys->element[i]->str);
    }
    freeReplyObject(keys);
}

/* Under the leader's feet, step by step: it goes on renewing by MOVED and ASK. */
static void a_slot_moves_while_a_lease_is_held(void **state)
{
    struct member leader, follower;
    uint64_t epoch;
    unsigned slot;
    char name[16];

    name_on(1, name);
    slot = slot_of(name);
    server_trust(&nodes[1], name);
    open_at(&leader, 0, "lease=60s&max-lease=60s&heartbeat-interval=100ms&process-lifetime=30s");
    campaign(&leader, name);
    GROUP_AWAIT(baton_is_leader(leader.election));
    epoch = baton_epoch(leader.election);
    open_at(&follower, 2, "lease=60s&max-lease=60s&heartbeat-interval=100ms&process-lifetime=30s");
    campaign(&follower, name);

    server_tell(&nodes[2], "CLUSTER SETSLOT %d IMPORTING %s", (int)slot, ids[1]);
    server_tell(&nodes[1], "CLUSTER SETSLOT %d MIGRATING %s", (int)slot, ids[2]);
    await_renewal(&leader); /* where it was */
    migrate_keys(slot, 1, 2);
    await_renewal(&leader); /* ASK */
    set_slot(slot, 2);
    await_renewal(&leader); /* MOVED */
    assert_true(has_key(&nodes[2], name));
    await_renewal(&leader); /* and now without a detour */
    assert_true(baton_is_leader(leader.election));
    assert_int_equal(baton_epoch(leader.election), epoch);
    ASSERT_OK(baton_resign(leader.election, BATON_TIMEOUT_DEFAULT, failure));
    GROUP_AWAIT(baton_is_leader(follower.election));
    assert_true(baton_epoch(follower.election) > epoch);
    baton_close(leader.baton);
    baton_close(follower.baton);
}

static void a_name_without_a_tag_is_told(void **state)
{
    struct member member;

    open_at(&member, 0, "lease=600ms&max-lease=600ms&check-interval=100ms");
    want_error("CROSSSLOT");
    campaign(&member, "race");
    GROUP_AWAIT(heard.is_there);
    baton_close(member.baton);
}

/* The node of the election dies: the cluster is down, and says so; the lease ends by the clock. */
static void a_cluster_that_is_down_is_told_and_waited_for(void **state)
{
    struct member member;
    uint64_t epoch;
    char name[16];

    name_on(1, name);
    open_at(&member, 0, "lease=2s&max-lease=2s&check-interval=100ms&answer-timeout=500ms");
    campaign(&member, name);
    GROUP_AWAIT(baton_is_leader(member.election));
    epoch = baton_epoch(member.election);
    want_error("CLUSTERDOWN");
    server_kill(&nodes[1]);
    GROUP_AWAIT(heard.is_there);
    GROUP_AWAIT(!baton_is_leader(member.election));
    server_start(&nodes[1]);
    GROUP_AWAIT(baton_is_leader(member.election));
    assert_true(baton_epoch(member.election) > epoch);
    baton_close(member.baton);
}

/* The node that the URL names dies: what lies on others goes on, without it. */
static void the_node_that_was_named_may_die(void **state)
{
    struct member member;
    uint64_t epoch;
    char name[16];
    redisReply *reply;

    for (int i = 0; i < NODES; i++) {
        server_tell(&nodes[i], "CONFIG SET cluster-require-full-coverage no");
    }
    name_on(1, name);
    server_trust(&nodes[1], name);
    open_at(&member, 0, "lease=60s&max-lease=60s&heartbeat-interval=100ms&answer-timeout=500ms");
    campaign(&member, name);
    GROUP_AWAIT(baton_is_leader(member.election));
    epoch = baton_epoch(member.election);
    want_error("Redis at 127.0.0.1");
    server_kill(&nodes[0]);
    GROUP_AWAIT(heard.is_there);
    await_renewal(&member);
    await_renewal(&member);
    assert_int_equal(baton_epoch(member.election), epoch);
    GROUP_AWAIT((reply = server_ask(&nodes[1], "PUBSUB NUMSUB %s:wake", name)) &&
                (reply->element[1]->integer == 1 || (freeReplyObject(reply), false)));
    freeReplyObject(reply);
    baton_close(member.baton);
}

static int lead_on_all(void *userdata)
{
    char url[512];
    struct baton *baton;
    struct baton_election *election;

    write_url(url, 0, LONG);
    ASSERT_OK(baton_open(&baton, url, NULL, failure));
    for (int i = 0; i < NODES; i++) {
        char name[16];
        name_on(i, name);
        ASSERT_OK(baton_campaign(&election, baton, name, NULL, failure));
    }
    (void)pause(); /* until it is killed */
    return 0;
}

static void a_guardian_releases_to_every_node_that_has_an_election(void **state)
{
    char names[NODES][16];
    pid_t child;

    for (int i = 0; i < NODES; i++) {
        name_on(i, names[i]);
        server_trust(&nodes[i], names[i]);
    }
    child = process_fork(lead_on_all, NULL);
    for (int i = 0; i < NODES; i++) {
        SERVER_AWAIT(has_key(&nodes[i], names[i]) && is_registered(&nodes[i], names[i]));
    }
    process_end(child);
    for (int i = 0; i < NODES; i++) {
        SERVER_AWAIT(!has_key(&nodes[i], names[i]));
    }
}

/* One process, an election on each node; not every node is one that it was told of. */
static void behind_tls_a_guardian_releases_to_every_node_too(void **state)
{
    assert_true(folder[0]);
    a_guardian_releases_to_every_node_that_has_an_election(state);
}

/* WAIT would have to go where the grant came from. Refused aloud: nobody is to believe in it. */
static void replicas_are_not_waited_for_in_a_cluster_and_that_is_told(void **state)
{
    struct member member;
    char name[16];

    name_on(1, name);
    server_trust(&nodes[1], name);
    open_at(&member, 0, "lease=60s&max-lease=60s&wait-replicas=1");
    want_error("wait-replicas is not for a Redis Cluster: leave it out");
    campaign(&member, name);
    GROUP_AWAIT(heard.is_there);
    assert_false(baton_is_leader(member.election));
    baton_close(member.baton);
    SERVER_AWAIT(!has_key(&nodes[1], name)); /* nor is the lock left behind */
    open_at(&member, 0, "lease=60s&max-lease=60s");
    campaign(&member, name);
    GROUP_AWAIT(baton_is_leader(member.election));
    baton_close(member.baton);
}

static int baton_main(void *userdata)
{
    char url[512];

    write_url(url, 0, LONG);
    execl(BATON_PROGRAM, "baton", "run", "--provider", url, "--election", (const char *)userdata,
          "--node", "g", "--data", nodes[0].folder, "--", "sleep", "1000", (char *)NULL);
    return 127;
}

static void a_guardian_releases_to_the_node_of_the_election(void **state)
{
    char name[16];
    pid_t child;

    name_on(2, name);
    server_trust(&nodes[2], name);
    child = process_fork(baton_main, name);
    /* Not only the lock: the process knows that it has it, and its commands for the guardian were
     * set before. */
    SERVER_AWAIT(has_key(&nodes[2], name) && is_registered(&nodes[2], name));
    process_end(child);
    SERVER_AWAIT(!has_key(&nodes[2], name));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        CASE(a_key_has_the_slot_that_the_cluster_says),
        CASE(whichever_node_is_known_all_are_used),
        CASE(a_slot_moves_while_a_lease_is_held),
        CASE(a_name_without_a_tag_is_told),
        CASE(a_cluster_that_is_down_is_told_and_waited_for),
        CASE(the_node_that_was_named_may_die),
        CASE(a_guardian_releases_to_the_node_of_the_election),
        CASE(a_guardian_releases_to_every_node_that_has_an_election),
        CASE(replicas_are_not_waited_for_in_a_cluster_and_that_is_told),
        cmocka_unit_test_setup_teardown(behind_tls_a_guardian_releases_to_every_node_too,
                                        begin_secured, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* An election while its real Redis server fails, loses data or answers wrongly, and beside a
 * process that was written from the seed's text alone. */
#include "lib/process.h"
#include "provider/group.h"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int port;
static pid_t server;

static int server_main(void *userdata)
{
    char text[12];

    snprintf(text, sizeof(text), "%d", port);
    execlp("redis-server", "redis-server", "--port", text, "--bind", "127.0.0.1", "--save", "",
           "--dbfilename", "", "--appendonly", "no", "--logfile", "/dev/null", (char *)NULL);
    return 127;
}

static redisContext *client(void)
{
    redisContext *context = redisConnect("127.0.0.1", port);

    for (int i = 0; !context || context->err != 0; i++) {
        assert_true(i < PATIENCE_MS);
        redisFree(context);
        group_pause();
        context = redisConnect("127.0.0.1", port);
    }
    return context;
}

/* Carries one command out; the caller frees the reply. */
static redisReply *ask(const char *command)
{
    redisContext *context = client();
    redisReply *reply = redisCommand(context, command);

    assert_non_null(reply);
    redisFree(context);
    return reply;
}

static void tell(const char *command)
{
    redisReply *reply = ask(command);

    if (reply->type == REDIS_REPLY_ERROR) {
        fail_msg("%s: %s", command, reply->str);
    }
    freeReplyObject(reply);
}

static bool answers(const char *command, const char *text)
{
    redisReply *reply = ask(command);
    bool same = text ? reply->str && strcmp(reply->str, text) == 0 : reply->type == REDIS_REPLY_NIL;

    freeReplyObject(reply);
    return same;
}

static bool has_run_for_a_lease(void)
{
    redisReply *reply = ask("INFO server");
    const char *uptime = strstr(reply->str, "uptime_in_seconds:");
    bool has = uptime && strtol(uptime + 18, NULL, 10) >= 2;

    freeReplyObject(reply);
    return has;
}

static void *begin(void)
{
    port = process_free_port();
    server = process_fork(server_main, NULL);
    GROUP_AWAIT(has_run_for_a_lease());
    return &port;
}

static void url(void *own, int number, char *ret, size_t ret_bytes)
{
    snprintf(ret, ret_bytes,
             "redis://"
             "127.0.0.1:%d?lease=900ms&max-lease=900ms&check-interval=300ms&answer-timeout=500ms",
             port);
}

static void end(void *own)
{
    process_end(server);
}

static const struct tested_provider redis = {"redis", begin, url, end, true, true};

static int set_up(void **state)
{
    struct group *group = calloc(1, sizeof(*group));

    assert_non_null(group);
    group->provider = &redis;
    group->own = redis.begin();
    *state = group;
    return 0;
}

static int tear_down(void **state)
{
    struct group *group = *state;

    for (int i = 0; i < GROUP_NODES; i++) {
        group_close(group, i);
    }
    redis.end(group->own);
    free(group);
    return 0;
}

static bool nobody_leads(struct group *group)
{
    group_check_one(group);
    for (int i = 0; i < GROUP_NODES; i++) {
        if (group->members[i].election && baton_is_leader(group->members[i].election)) {
            return false;
        }
    }
    return true;
}

/* ---- The server fails ------------------------------------------------------------------------ */

static void a_server_that_lost_its_data_gives_no_second_lease(void **state)
{
    struct group *group = *state;
    uint64_t epoch;
    int leader;

    group_open_all(group);
    leader = group_leader(group);
    epoch = baton_epoch(group->members[leader].election);
    process_end(server);
    GROUP_AWAIT(nobody_leads(group)); /* the lease ends by the clock */
    server = process_fork(server_main, NULL);
    leader = group_leader(group);
    assert_true(baton_epoch(group->members[leader].election) > epoch);
}

/* Long leases are granted although the server has just begun. */
static void trust(void)
{
    redisReply *info = ask("INFO replication");
    const char *history = strstr(info->str, "master_replid:");
    char command[128];

    assert_non_null(history);
    snprintf(command, sizeof(command), "HSET race:epoch server %.40s since 0",
             history + strlen("master_replid:"));
    tell(command);
    freeReplyObject(info);
}

static void open_with(struct member *member, const char *settings)
{
    struct baton_options options = {.size = sizeof(options), .node = "n"};
    char url[160];

    snprintf(url, sizeof(url), "redis://127.0.0.1:%d?check-interval=100ms&%s", port, settings);
    ASSERT_OK(baton_open(&member->baton, url, &options, failure));
}

static void a_leader_keeps_its_lease_when_the_server_comes_back_empty(void **state)
{
    struct group *group = *state;
    struct member *member = &group->members[0];
    char epoch[24];

    trust();
    open_with(member, "lease=60s&max-lease=60s&heartbeat-interval=100ms");
    ASSERT_OK(baton_campaign(&member->election, member->baton, "race", NULL, failure));
    GROUP_AWAIT(baton_is_leader(member->election));
    snprintf(epoch, sizeof(epoch), "%llu", (unsigned long long)baton_epoch(member->election));
    process_end(server);
    server = process_fork(server_main, NULL);
    GROUP_AWAIT(!baton_is_leader(member->election) || answers("HGET race:epoch epoch", epoch));
    assert_true(baton_is_leader(member->election));
    assert_true(answers("HGET race:epoch most", "60000"));
}

static void hear_difference(struct baton_election *election, const struct baton_event *event,
                            void *userdata)
{
    if (event->type == BATON_EVENT_ERROR && strstr(event->error.message, "max-lease=0.9s") &&
        strstr(event->error.message, "max-lease=2s")) {
        *(_Atomic bool *)userdata = true;
    }
}

static void a_max_lease_that_differs_from_the_leaders_is_told(void **state)
{
    struct group *group = *state;
    struct member *member = &group->members[1];
    struct baton_campaign_options observes = {.size = sizeof(observes), .observes = true};
    _Atomic bool is_told = false;

    open_with(member, "lease=900ms&max-lease=2s");
    ASSERT_OK(baton_campaign(&member->election, member->baton, "race", &observes, failure));
    ASSERT_OK(baton_on(NULL, member->election, BATON_EVENT_ERROR, BATON_ON_LOOP, hear_difference,
                       (void *)&is_told, failure));
    group_open(group, 0, true, false);
    GROUP_AWAIT(is_told);
    group_close(group, 1);
}

/* The one that leads hears of it, and so does one that only follows, of another that does. */
static void a_max_lease_of_a_member_that_does_not_lead_is_told(void **state)
{
    struct group *group = *state;
    struct member *member = &group->members[2];
    struct baton_campaign_options observes = {.size = sizeof(observes), .observes = true};
    static _Atomic bool is_told[2];

    group_open(group, 0, true, false);
    group_open(group, 1, true, true);
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(baton_on(NULL, group->members[i].election, BATON_EVENT_ERROR, BATON_ON_LOOP,
                           hear_difference, (void *)&is_told[i], failure));
    }
    GROUP_AWAIT(baton_is_leader(group->members[0].election));
    open_with(member, "lease=900ms&max-lease=2s");
    ASSERT_OK(baton_campaign(&member->election, member->baton, "race", &observes, failure));
    GROUP_AWAIT(is_told[0] && is_told[1]);
    group_close(group, 2);
}

static void a_server_that_hangs_costs_the_lease_and_no_more(void **state)
{
    struct group *group = *state;
    uint64_t epoch;
    int leader;

    group_open_all(group);
    leader = group_leader(group);
    epoch = baton_epoch(group->members[leader].election);
    assert_int_equal(kill(server, SIGSTOP), 0);
    GROUP_AWAIT(nobody_leads(group));
    assert_int_equal(kill(server, SIGCONT), 0);
    leader = group_leader(group);
    assert_true(baton_epoch(group->members[leader].election) > epoch);
}

/* Whether the election was made on the server's history as it is now, with a replica. */
static bool knows_its_history(void)
{
    redisReply *info = ask("INFO replication");
    char *at = strstr(info->str, "master_replid:");
    bool has_replica = strstr(info->str, "connected_slaves:1") != NULL;
    bool knows;

    assert_non_null(at);
    at += strlen("master_replid:");
    at[strcspn(at, "\r")] = '\0';
    knows = has_replica && answers("HGET race:epoch server", at);
    freeReplyObject(info);
    return knows;
}

static void a_server_that_is_not_there_yet_is_waited_for(void **state)
{
    struct group *group = *state;

    process_end(server);
    for (int i = 0; i < GROUP_NODES; i++) {
        group_open(group, i, true, false);
    }
    assert_true(nobody_leads(group));
    server = process_fork(server_main, NULL);
    (void)group_leader(group);
}

/* A server gets another history with its first replica. Nobody was away, and nobody is to wait. */
static void a_first_replica_is_no_reason_to_wait(void **state)
{
    struct group *group = *state;
    int own_port = port;
    int other_port;
    pid_t other;
    char command[128];

    group_open(group, 0, true, false);
    (void)group_leader(group);
    other_port = process_free_port();
    port = other_port;
    other = process_fork(server_main, NULL);
    snprintf(command, sizeof(command), "REPLICAOF 127.0.0.1 %d", own_port);
    tell(command);
    port = own_port;
    GROUP_AWAIT(knows_its_history());
    process_end(other);
}

/* ---- Values of others ------------------------------------------------------------------------ */

static void hear_errors(struct baton_election *election, const struct baton_event *event,
                        void *userdata)
{
    if (event->type == BATON_EVENT_ERROR) {
        *(_Atomic int *)userdata = event->error.code;
    }
}

static void hostile_values_are_reported_and_survived(void **state)
{
    struct group *group = *state;
    _Atomic int code = 0;

    group_open(group, 0, true, false);
    (void)group_leader(group);
    ASSERT_OK(baton_on(NULL, group->members[0].election, BATON_EVENT_ERROR, BATON_ON_LOOP,
                       hear_errors, (void *)&code, failure));
    tell("DEL race:master race:processes race:processes:expiry");
    tell("LPUSH race:master not a string");
    tell("HSET race:processes x not-json");
    tell("HSET race:processes y {\"identifier\":7,\"capabilities\":[]}");
    GROUP_AWAIT(code == BATON_EPROTO); /* WRONGTYPE */
    GROUP_AWAIT(nobody_leads(group));
    tell("DEL race:master");
    tell("HSET race:epoch epoch garbage since 99999999999999999999 server x");
    tell("DEL race:epoch");
    (void)group_leader(group);
    group_close(group, 0); /* it may tell of trouble until then */
}

static void an_epoch_from_the_future_is_only_gone_above(void **state)
{
    struct group *group = *state;

    tell("HSET race:epoch epoch 4000000000000 holder nobody"); /* the year 2096 */
    group_open(group, 0, true, false);
    (void)group_leader(group);
    assert_true(baton_epoch(group->members[0].election) > 4000000000000);
}

/* It is asked for the lock while it hangs, and answers when nobody is there any more. */
static void whoever_stops_between_request_and_answer_leaves_no_lock(void **state)
{
    struct group *group = *state;
    struct member *member = &group->members[0];
    struct baton_election *warm;
    redisReply *reply;

    group_open(group, 0, false, false);
    ASSERT_OK(baton_campaign(&warm, member->baton, "warm", NULL, failure));
    GROUP_AWAIT(baton_is_leader(warm)); /* so it is connected */
    assert_int_equal(kill(server, SIGSTOP), 0);
    ASSERT_OK(baton_campaign(&member->election, member->baton, "race", NULL, failure));
    baton_stop(member->baton);
    assert_int_equal(kill(server, SIGCONT), 0);
    reply = ask("HGET race:epoch epoch");
    assert_int_equal(reply->type, REDIS_REPLY_STRING); /* it was granted */
    freeReplyObject(reply);
    reply = ask("EXISTS race:master");
    assert_int_equal(reply->integer, 0);
    freeReplyObject(reply);
}

/* ---- Events ---------------------------------------------------------------------------------- */

struct heard {
    char text[8192]; /* on a busy machine it fails more than once */
};

static void hear(struct baton_election *election, const struct baton_event *event, void *userdata)
{
    struct heard *heard = userdata;
    size_t used = strlen(heard->text);

    snprintf(heard->text + used, sizeof(heard->text) - used, "%s%s ", baton_event_name(event->type),
             event->type != BATON_EVENT_ROLE       ? ""
             : event->role == BATON_ROLE_CANDIDATE ? "=candidate"
             : event->role == BATON_ROLE_LEADER    ? "=leader"
                                                   : "=follower");
}

/* On this very thread: what is heard and what is asked do not race. */
static bool has_heard(struct baton *baton, const struct heard *heard, const char *text)
{
    (void)baton_dispatch(baton);
    return strstr(heard->text, text) != NULL;
}

static void an_election_starts_and_fails_or_completes(void **state)
{
    struct group *group = *state;
    struct member *member = &group->members[0];
    static struct heard heard;

    process_end(server);
    group_open(group, 0, false, false);
    ASSERT_OK(baton_campaign(&member->election, member->baton, "race", NULL, failure));
    ASSERT_OK(baton_on(NULL, member->election,
                       BATON_EVENT_ROLE | BATON_EVENT_ELECTION_STARTED |
                           BATON_EVENT_ELECTION_FAILED | BATON_EVENT_ELECTION_COMPLETED |
                           BATON_EVENT_ACQUIRED,
                       BATON_ON_DISPATCH, hear, (void *)&heard, failure));
    server = process_fork(server_main, NULL); /* it may have forgotten a lease */
    GROUP_AWAIT(has_heard(member->baton, &heard,
                          "role-changed=candidate election-started role-changed=follower "
                          "election-failed "));
    (void)group_leader(group);
    GROUP_AWAIT(has_heard(member->baton, &heard,
                          "role-changed=candidate election-started role-changed=leader "
                          "leadership-acquired election-completed "));
}

/* What one node heard of each member. */
struct comings {
    _Atomic int joined, left;
    _Atomic int third_joined; /* of these; so that it is not gone before it was seen */
    _Atomic int ghost_joined, ghost_left;
};

static void count_members(struct baton_election *election, const struct baton_event *event,
                          void *userdata)
{
    struct comings *comings = userdata;
    bool is_ghost = strcmp(event->member.name, "ghost") == 0;

    if (event->type == BATON_EVENT_MEMBER_JOINED) {
        ++*(is_ghost ? &comings->ghost_joined : &comings->joined);
        comings->third_joined += strcmp(event->member.name, "n2") == 0;
    } else {
        ++*(is_ghost ? &comings->ghost_left : &comings->left);
    }
}

enum { GHOST_S = 4 }; /* it is gone then; a busy machine sees it before */

static void summon_ghost(void)
{
    redisReply *time = ask("TIME");
    char command[96];

    snprintf(command, sizeof(command), "ZADD race:processes:expiry %lld ghost",
             (strtoll(time->element[0]->str, NULL, 10) + GHOST_S) * 1000);
    tell("HSET race:processes ghost {\"processId\":\"ghost\",\"identifier\":\"ghost\"}");
    tell(command);
    tell("PUBLISH race:wake members");
    freeReplyObject(time);
}

static void members_come_and_go_once_each_also_over_a_change_of_leader(void **state)
{
    struct group *group = *state;
    static struct comings comings[2];
    int leader;

    for (int i = 0; i < 2; i++) {
        group_open(group, i, true, false);
        ASSERT_OK(baton_on(NULL, group->members[i].election,
                           BATON_EVENT_MEMBER_JOINED | BATON_EVENT_MEMBER_LEFT, BATON_ON_LOOP,
                           count_members, &comings[i], failure));
    }
    /* The second may have read of the first before its listener was there. */
    GROUP_AWAIT(comings[0].joined == 1);
    leader = group_leader(group);
    ASSERT_OK(baton_resign(group->members[leader].election, 0, failure));
    (void)group_leader_but(group, leader);
    summon_ghost(); /* a process of the seed that dies without a word */
    GROUP_AWAIT(comings[0].ghost_joined == 1 && comings[1].ghost_joined == 1);
    GROUP_AWAIT(comings[0].ghost_left == 1 && comings[1].ghost_left == 1);
    group_open(group, 2, true, false);
    GROUP_AWAIT(comings[0].third_joined == 1 && comings[1].third_joined == 1);
    group_close(group, 2);
    GROUP_AWAIT(comings[0].left == 1 && comings[1].left == 1);
    leader = group_leader(group);
    ASSERT_OK(baton_resign(group->members[leader].election, 0, failure));
    (void)group_leader_but(group, leader);
    for (int i = 0; i < 2; i++) {
        assert_in_range(comings[i].joined, i == 0 ? 2 : 1, 2);
        assert_int_equal(comings[i].left, 1);
        assert_int_equal(comings[i].ghost_joined, 1);
        assert_int_equal(comings[i].ghost_left, 1);
    }
}

/* A notice is told once at most, and who was not listening just then never hears of it. */
static void members_of_whom_no_notice_tells_are_found(void **state)
{
    struct group *group = *state;
    static struct comings comings[2];

    for (int i = 0; i < 2; i++) {
        group_open(group, i, true, false);
        ASSERT_OK(baton_on(NULL, group->members[i].election,
                           BATON_EVENT_MEMBER_JOINED | BATON_EVENT_MEMBER_LEFT, BATON_ON_LOOP,
                           count_members, &comings[i], failure));
    }
    (void)group_leader(group);
    tell("HSET race:processes ghost {\"processId\":\"ghost\",\"identifier\":\"ghost\"}");
    GROUP_AWAIT(comings[0].ghost_joined == 1 && comings[1].ghost_joined == 1);
    tell("HDEL race:processes ghost");
    GROUP_AWAIT(comings[0].ghost_left == 1 && comings[1].ghost_left == 1);
}

static bool leads(const struct member *member, const char *name)
{
    struct baton_member leader = {.name = ""};

    return baton_leader(member->election, &leader, NULL, NULL) == BATON_OK &&
           strcmp(leader.name, name) == 0;
}

static void a_leader_whose_lock_is_seen_first_gets_its_name(void **state)
{
    struct group *group = *state;

    group_open(group, 0, true, true);
    tell("SET race:master ghost-id NX PX 60000");
    GROUP_AWAIT(leads(&group->members[0], "ghost-id"));
    tell("HSET race:processes ghost-id {\"processId\":\"ghost-id\",\"identifier\":\"ghost\"}");
    GROUP_AWAIT(leads(&group->members[0], "ghost"));
}

/* A time in the only follower's entry. */
static bool read_follower(const char *field, char ret[32])
{
    redisReply *reply = ask("HVALS race:slaves");
    const char *at = reply->elements > 0 ? strstr(reply->element[0]->str, field) : NULL;

    snprintf(ret, 32, "%.24s", at ? at + strlen(field) + 3 : "");
    freeReplyObject(reply);
    return at != NULL;
}

static void a_follower_is_registered_at_one_time_and_seen_at_many(void **state)
{
    struct group *group = *state;
    struct member *member = &group->members[0];
    struct baton_campaign_options observes = {.size = sizeof(observes), .observes = true};
    char registered[32];
    char seen[32];
    char now[32];

    open_with(member, "lease=900ms&max-lease=900ms&heartbeat-interval=50ms&process-lifetime=900ms");
    ASSERT_OK(baton_campaign(&member->election, member->baton, "race", &observes, failure));
    GROUP_AWAIT(read_follower("registeredAt", registered) && read_follower("lastSeen", seen));
    GROUP_AWAIT(read_follower("lastSeen", now) && strcmp(now, seen) != 0);
    assert_true(read_follower("registeredAt", now));
    assert_string_equal(now, registered);
}

/* A peer that writes its entries as seed 000 says, and has died; another one lives. */
static void a_dead_peer_of_the_seed_is_removed_and_a_living_one_stays(void **state)
{
    struct group *group = *state;
    struct member *member = &group->members[0];
    static struct comings comings;
    char alive[128];

    open_with(member, "lease=900ms&max-lease=900ms&process-lifetime=1500ms");
    ASSERT_OK(baton_campaign(&member->election, member->baton, "race", NULL, failure));
    ASSERT_OK(baton_on(NULL, member->election, BATON_EVENT_MEMBER_JOINED | BATON_EVENT_MEMBER_LEFT,
                       BATON_ON_LOOP, count_members, &comings, failure));
    tell("HSET race:processes ghost {\"identifier\":\"ghost\",\"lastSeen\":1700000000000}");
    tell("HSET race:channels ghost worker:slave:ghost");
    tell("HSET race:slaves ghost {\"nodeId\":\"ghost\"}");
    for (long long beat = 1; comings.ghost_left == 0; beat++) {
        assert_true(beat < PATIENCE_MS);
        snprintf(alive, sizeof(alive), "HSET race:processes alive {\"lastSeen\":%lld}", beat);
        tell(alive);
        group_pause();
    }
    assert_true(answers("HGET race:processes ghost", NULL));
    assert_true(answers("HGET race:channels ghost", NULL));
    assert_true(answers("HGET race:slaves ghost", NULL));
    assert_false(answers("HGET race:processes alive", NULL));
    assert_int_equal(comings.ghost_left, 1);
    tell("DEL race:processes");
}

/* ---- Beside a process that knows the seed's text alone --------------------------------------- */

static void a_plain_peer_and_we_exclude_each_other(void **state)
{
    struct group *group = *state;

    tell("SET race:master plain-peer NX PX 60000");
    group_open(group, 0, true, false);
    group_open(group, 1, true, false);
    ASSERT_OK(baton_wait(group->members[0].election, BATON_TIMEOUT_DEFAULT, failure));
    ASSERT_OK(baton_wait(group->members[1].election, BATON_TIMEOUT_DEFAULT, failure));
    assert_true(nobody_leads(group));
    tell("DEL race:master race:heartbeat"); /* its release tells nobody */
    (void)group_leader(group);
    assert_true(answers("SET race:master plain-peer NX PX 60000", NULL));
    for (int i = 0; i < 2; i++) {
        baton_stop(group->members[i].baton);
    }
    assert_true(answers("SET race:master plain-peer NX PX 60000", "OK"));
}

static void the_registry_has_the_keys_and_fields_of_the_seed(void **state)
{
    struct group *group = *state;
    static const char *const fields[] = {"\"processId\"", "\"nodeId\"",   "\"identifier\"",
                                         "\"role\"",      "\"lastSeen\"", "\"capabilities\""};
    redisReply *reply;
    char channel[128];
    size_t masters = 0;

    group_open_all(group);
    (void)group_leader(group);
    GROUP_AWAIT(answers("EXISTS race:master_process", NULL) == false &&
                (reply = ask("HVALS race:processes")) &&
                (reply->elements == GROUP_NODES || (freeReplyObject(reply), false)));
    for (size_t i = 0; i < reply->elements; i++) {
        for (size_t j = 0; j < sizeof(fields) / sizeof(fields[0]); j++) {
            assert_non_null(strstr(reply->element[i]->str, fields[j]));
        }
    }
    freeReplyObject(reply);
    reply = ask("HGETALL race:channels");
    assert_int_equal(reply->elements, 2 * GROUP_NODES);
    snprintf(channel, sizeof(channel), "worker:slave:%s", reply->element[0]->str);
    assert_string_equal(reply->element[1]->str, channel);
    freeReplyObject(reply);
    do {
        reply = ask("HVALS race:processes");
        masters = 0;
        for (size_t i = 0; i < reply->elements; i++) {
            masters += strstr(reply->element[i]->str, "\"role\":\"master\"") != NULL;
        }
        freeReplyObject(reply);
        group_pause();
    } while (masters != 1);
    for (int i = 0; i < GROUP_NODES; i++) {
        baton_stop(group->members[i].baton);
    }
    reply = ask("HLEN race:processes");
    assert_int_equal(reply->integer, 0);
    freeReplyObject(reply);
}

/* Numbers may be longer when they are written out: what counts is what the others would read.
 */
static void metadata_that_the_others_would_not_read_is_refused(void **state)
{
    static char text[64 * 1024];
    int used = snprintf(text, sizeof(text), "{\"load\":[0");
    struct group *group = *state;
    struct baton_campaign_options options = {.size = sizeof(options), .metadata = text};
    struct baton_election *election = NULL;
    struct baton_error error;

    for (int i = 0; i < 5000; i++) {
        used += snprintf(text + used, sizeof(text) - (size_t)used, ",1e15");
    }
    (void)snprintf(text + used, sizeof(text) - (size_t)used, "]}");
    group_open_all(group);
    assert_int_equal(baton_set_metadata(group->members[1].election, text, &error), BATON_ETOOBIG);
    assert_non_null(strstr(error.message, "61440"));
    assert_int_equal(baton_campaign(&election, group->members[1].baton, "other", &options, &error),
                     BATON_ETOOBIG);
    assert_null(election);
    ASSERT_OK(baton_set_metadata(group->members[1].election, "{\"load\":80}", failure));
}

static void set_other_metadata(struct baton_election *election, const struct baton_event *event,
                               void *userdata)
{
    if (event->member.is_self) {
        (void)baton_set_metadata(election, "{\"load\":2}", NULL);
    }
}

static void read_metadata(struct baton_election *election, const struct baton_event *event,
                          void *userdata)
{
    atomic_int *load = userdata;
    const char *seen = event->member.metadata ? strstr(event->member.metadata, ":") : NULL;

    if (event->member.is_self) {
        *load = seen ? seen[1] - '0' : -1;
    }
}

/* For the address sanitizer: the event's text was freed under the second listener. */
static void a_listener_may_set_metadata_while_its_member_is_announced(void **state)
{
    struct group *group = *state;
    atomic_int load = 0;
    int leader;
    struct member *next;

    group_open_all(group);
    leader = group_leader(group);
    next = &group->members[(leader + 1) % GROUP_NODES];
    ASSERT_OK(baton_set_metadata(next->election, "{\"load\":1}", failure));
    ASSERT_OK(baton_on(NULL, next->election, BATON_EVENT_LEADER, BATON_ON_LOOP, set_other_metadata,
                       NULL, failure));
    ASSERT_OK(baton_on(NULL, next->election, BATON_EVENT_LEADER, BATON_ON_LOOP, read_metadata,
                       &load, failure));
    GROUP_AWAIT(baton_pass(group->members[leader].election, next->node, -1, NULL) == BATON_OK);
    GROUP_AWAIT(load != 0);
    assert_int_equal(load, 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_server_that_lost_its_data_gives_no_second_lease),
        CASE(a_leader_keeps_its_lease_when_the_server_comes_back_empty),
        CASE(a_max_lease_that_differs_from_the_leaders_is_told),
        CASE(a_max_lease_of_a_member_that_does_not_lead_is_told),
        CASE(a_server_that_hangs_costs_the_lease_and_no_more),
        CASE(a_server_that_is_not_there_yet_is_waited_for),
        CASE(a_first_replica_is_no_reason_to_wait),
        CASE(hostile_values_are_reported_and_survived),
        CASE(an_epoch_from_the_future_is_only_gone_above),
        CASE(whoever_stops_between_request_and_answer_leaves_no_lock),
        CASE(an_election_starts_and_fails_or_completes),
        CASE(members_come_and_go_once_each_also_over_a_change_of_leader),
        CASE(members_of_whom_no_notice_tells_are_found),
        CASE(a_leader_whose_lock_is_seen_first_gets_its_name),
        CASE(a_follower_is_registered_at_one_time_and_seen_at_many),
        CASE(a_dead_peer_of_the_seed_is_removed_and_a_living_one_stays),
        CASE(a_plain_peer_and_we_exclude_each_other),
        CASE(the_registry_has_the_keys_and_fields_of_the_seed),
        CASE(metadata_that_the_others_would_not_read_is_refused),
        CASE(a_listener_may_set_metadata_while_its_member_is_announced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

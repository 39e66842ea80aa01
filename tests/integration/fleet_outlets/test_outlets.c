/* Commands of other programs, and the names by which they read a fleet in a real Redis server. */
#include "fleet/outlets/commands.h"
#include "fleet/outlets/seed_names.h"
#include "integration/fleet_state/stand.h"
#include "lib/process.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct displays *displays[PEERS];
static struct commands *commands[PEERS];
static struct seed_names *names[PEERS];
static struct worker_table *tables[PEERS];
static struct master {
    bool leads;
    int asked; /* whether it leads: at each tick */
} masters[PEERS];
static size_t refused, failed;
static char reason[BATON_ERROR_MESSAGE_MAX];

static void on_refused(void *userdata, const struct baton_error *error)
{
    refused++;
    (void)snprintf(reason, sizeof(reason), "%s", error->message);
}

static void on_published(void *userdata, int code, const struct baton_error *error)
{
    *(int *)userdata = code;
}

static void publish(const char *channel, const char *text)
{
    int code = 1;

    ASSERT_OK(
        store_publish(peers[0].member, channel, text, strlen(text), on_published, &code, failure));
    AWAIT(code != 1);
    assert_int_equal(code, BATON_OK);
}

static int set_up(void **state)
{
    refused = failed = 0;
    memset(masters, 0, sizeof(masters));
    return stand_set_up(state);
}

static int tear_down(void **state)
{
    for (int i = 0; i < PEERS; i++) {
        commands_close(commands[i]);
        displays_close(displays[i]);
        seed_names_close(names[i]);
        worker_table_close(tables[i]);
        commands[i] = NULL;
        displays[i] = NULL;
        names[i] = NULL;
        tables[i] = NULL;
    }
    return stand_tear_down(state);
}

/* ---- Commands -------------------------------------------------------------------------------- */

static void open_commands(void)
{
    for (int i = 0; i < PEERS; i++) {
        stand_ready(i);
    }
    assert_int_equal(put(0, FLEET_DISPLAY, "{\"id\":\"d1\"}", 0, NULL), BATON_OK);
    for (int i = 0; i < PEERS; i++) {
        const struct displays_config config = {.state = peers[i].state};
        struct commands_config with = {.member = peers[i].member, .on_refused = on_refused};

        AWAIT(fleet_state_count(peers[i].state, FLEET_DISPLAY) == 1);
        ASSERT_OK(displays_open(&displays[i], &config, failure));
        with.displays = displays[i];
        ASSERT_OK(commands_open(&commands[i], &with, failure));
    }
}

static uint64_t taken(void)
{
    uint64_t count = 0;

    for (int i = 0; i < PEERS; i++) {
        count += commands_counters(commands[i])->taken;
    }
    return count;
}

/* Published until all of them listen: a command that is done already is taken, too. */
static void command(const char *text)
{
    const uint64_t before = taken();
    instant until = instant_add(clock_now(), SPAN_S(PATIENCE_S));

    while (taken() < before + PEERS) {
        publish("worker:commands", text);
        for (int turns = 0; turns < 20; turns++) {
            (void)uv_run(&loop, UV_RUN_ONCE);
        }
        assert_true(instant_before(clock_now(), until));
    }
}

static void commands_of_other_programs_are_carried_out(void **state)
{
    open_commands();
    command("{\"type\":\"setSessionId\",\"payload\":{\"displayIdentifier\":\"d1\","
            "\"sessionId\":12345}}");
    command("{\"type\":\"setProgressionStage\",\"payload\":{\"displayIdentifier\":\"d1\","
            "\"progressionStage\":\"car_fueling\"}}");
    for (int i = 0; i < PEERS; i++) {
        AWAIT(display_session_of(fleet_state_data(peers[i].state, "d1", NULL)).id == 12345);
        AWAIT(display_stage_of(fleet_state_data(peers[i].state, "d1", NULL)) == STAGE_CAR_FUELING);
    }
    command("{\"type\":\"setSessionId\",\"payload\":{\"displayIdentifier\":\"d1\","
            "\"sessionId\":null}}");
    for (int i = 0; i < PEERS; i++) {
        AWAIT(!display_session_of(fleet_state_data(peers[i].state, "d1", NULL)).is_set);
    }
    assert_int_equal(refused, 0);
}

static void wrong_and_other_commands_change_nothing(void **state)
{
    open_commands();
    command("{\"type\":\"setSessionId\",\"payload\":{\"displayIdentifier\":\"d1\","
            "\"sessionId\":5}}");
    publish("worker:commands",
            "{\"type\":\"subscribe\",\"payload\":{}}\nnonsense\n"
            "{\"type\":\"setSessionId\",\"payload\":{\"displayIdentifier\":\"d1\","
            "\"sessionId\":\"5\"}}\n\n"
            "{\"type\":\"setSessionId\",\"payload\":{\"displayIdentifier\":\"d9\","
            "\"sessionId\":5}}");
    AWAIT(refused == (size_t)3 * PEERS);
    assert_string_equal(reason, "display \"d9\": the fleet has none of this id");
    for (int i = 0; i < PEERS; i++) {
        assert_int_equal(commands_counters(commands[i])->passed_over, 1);
        assert_int_equal(display_session_of(fleet_state_data(peers[i].state, "d1", NULL)).id, 5);
    }
}

/* ---- Names in Redis -------------------------------------------------------------------------- */

static int port;
static pid_t server;
static redisContext *reader;

static int redis_main(void *userdata)
{
    char text[12];

    (void)snprintf(text, sizeof(text), "%d", port);
    (void)execlp("redis-server", "redis-server", "--port", text, "--bind", "127.0.0.1", "--save",
                 "", "--dbfilename", "", "--appendonly", "no", "--logfile", "/dev/null",
                 (char *)NULL);
    return 127;
}

static void begin_redis(void)
{
    server = process_fork(redis_main, NULL);
    reader = NULL;
    AWAIT((redisFree(reader), reader = redisConnect("127.0.0.1", port)) && !reader->err);
}

static void end_redis(void)
{
    redisFree(reader);
    process_end(server);
}

/* The reply to one command, as text; "": nil. */
static const char *ask(const char *command, const char *key, const char *field)
{
    static char text[512];
    redisReply *reply = field ? redisCommand(reader, "%s %s %s", command, key, field)
                              : redisCommand(reader, "%s %s", command, key);

    assert_non_null(reply);
    if (reply->type == REDIS_REPLY_INTEGER) {
        (void)snprintf(text, sizeof(text), "%lld", reply->integer);
    } else {
        (void)snprintf(text, sizeof(text), "%s", reply->str ? reply->str : "");
    }
    freeReplyObject(reply);
    return text;
}

static bool is(const char *command, const char *key, const char *field, const char *expected)
{
    return strcmp(ask(command, key, field), expected) == 0;
}

static bool is_master(void *userdata)
{
    struct master *master = userdata;

    master->asked++;
    return master->leads;
}

static void on_failed(void *userdata, const struct baton_error *error)
{
    failed++;
    (void)snprintf(reason, sizeof(reason), "%s", error->message);
}

static void open_names(int number)
{
    char url[64];
    const struct worker_table_config with = {.member = peers[number].member};
    struct seed_names_config config = {.state = peers[number].state,
                                       .url = url,
                                       .leads = is_master,
                                       .on_failed = on_failed,
                                       .userdata = &masters[number]};

    ASSERT_OK(worker_table_open(&tables[number], &with, failure));
    config.table = tables[number];
    (void)snprintf(url, sizeof(url), "redis://127.0.0.1:%d?lease=5s", port);
    ASSERT_OK(seed_names_open(&names[number], &config, failure));
}

static void write_state(const char *key, const char *text)
{
    put_raw(0, key, text);
}

/* As the owner of w1 publishes it. */
static void report(const char *process, int cpu)
{
    char text[512];

    (void)snprintf(text, sizeof(text),
                   "{\"type\":\"stateReport\",\"worker\":\"w1\",\"process\":\"%s\",\"epoch\":%d,"
                   "\"online\":true,\"inSync\":true,\"revision\":1,\"cpuUsage\":%d,"
                   "\"memoryUsage\":1,\"gpuUsage\":2,\"gpuMemoryUsage\":3,"
                   "\"cameraConnections\":[]}",
                   process, process[1] - '0', cpu);
    publish("worker:responses", text);
}

/* A fleet with worker w1, which process p1 owns, and worker w2, which nobody does. */
static void open_fleet(void)
{
    begin_redis();
    for (int i = 0; i < 2; i++) {
        stand_ready(i);
        open_names(i);
    }
    write_state("yard/worker/w1", "{\"url\":\"ws://h:1\",\"source\":\"registered\"}");
    write_state("yard/worker/w2", "{\"url\":\"ws://h:2\",\"source\":\"registered\"}");
    write_state("yard/assigned/w1",
                "{\"epoch\":1,\"subscriptions\":[\"d1;c1\",\"d2;c1\"],\"leaving\":[]}");
    AWAIT(fleet_state_worker_of(peers[0].state, "d2;c1") &&
          fleet_state_worker_of(peers[1].state, "d2;c1"));
    for (int i = 0; i < 2; i++) {
        while (!worker_table_find(tables[i], "w1")) {
            report("p1", 10);
            for (int turns = 0; turns < 20; turns++) {
                (void)uv_run(&loop, UV_RUN_ONCE);
            }
        }
    }
}

static bool state_has(const char *worker, const char *text)
{
    return strstr(ask("HGET", "worker:states", worker), text) != NULL;
}

static void the_master_writes_the_names_of_the_protocol(void **state)
{
    open_fleet();
    masters[0].leads = true;
    AWAIT(is("GET", "worker:owners:w1", NULL, "p1"));
    AWAIT(is("HGET", "worker:assignments", "d1;c1", "w1"));
    AWAIT(is("HLEN", "worker:assignments", NULL, "2"));
    AWAIT(state_has("w1", "\"online\":true,\"process\":\"p1\",\"cpuUsage\":10.0"));
    assert_true(state_has("w1", "\"subscriptionCount\":2"));
    assert_true(state_has("w2", "\"online\":false,\"process\":\"\""));
    assert_in_range(atoi(ask("TTL", "worker:owners:w1", NULL)), 20, 30);
    assert_true(is("EXISTS", "worker:owners:w2", NULL, "0"));
    assert_int_equal(failed, 0);
    end_redis();
}

static void what_changes_is_written(void **state)
{
    open_fleet();
    masters[0].leads = true;
    AWAIT(is("HLEN", "worker:assignments", NULL, "2"));
    report("p2", 77);
    AWAIT(is("GET", "worker:owners:w1", NULL, "p2"));
    AWAIT(state_has("w1", "\"cpuUsage\":77.0"));
    report("p2", 78); /* alone: the hash is not written anew for it */
    AWAIT(state_has("w1", "\"cpuUsage\":78.0"));
    write_state("yard/assigned/w1", "{\"epoch\":1,\"subscriptions\":[\"d2;c1\"],\"leaving\":[]}");
    write_state("yard/assigned/w2", "{\"epoch\":1,\"subscriptions\":[\"d3;c1\"],\"leaving\":[]}");
    AWAIT(is("HGET", "worker:assignments", "d3;c1", "w2"));
    AWAIT(is("HEXISTS", "worker:assignments", "d1;c1", "0"));
    publish("worker:responses", "{\"type\":\"workerOffline\",\"worker\":\"w1\",\"process\":\"p2\","
                                "\"epoch\":2,\"reason\":\"closed\"}");
    AWAIT(state_has("w1", "\"online\":false,\"process\":\"p2\""));
    (void)ask("DEL", "worker:owners:w1", NULL);
    write_state("yard/worker/w2", NULL);
    AWAIT(is("HEXISTS", "worker:states", "w2", "0"));
    assert_true(is("HEXISTS", "worker:states", "w1", "1"));
    assert_true(is("EXISTS", "worker:owners:w1", NULL, "0")); /* it is renewed no more */
    end_redis();
}

static void only_the_master_writes_and_a_new_one_writes_all(void **state)
{
    int asked;

    open_fleet();
    masters[0].leads = true;
    AWAIT(is("HLEN", "worker:states", NULL, "2"));
    masters[0].leads = false;
    asked = masters[0].asked;
    AWAIT(masters[0].asked > asked); /* what was under way is done */
    (void)ask("DEL", "worker:states", NULL);
    (void)ask("DEL", "worker:assignments", NULL);
    report("p1", 11);
    AWAIT(masters[0].asked > asked + 2 && masters[1].asked > 2);
    assert_true(is("EXISTS", "worker:states", NULL, "0"));
    assert_true(is("EXISTS", "worker:assignments", NULL, "0"));
    write_state("yard/worker/w3", "{\"url\":\"ws://h:3\",\"source\":\"registered\"}");
    masters[1].leads = true;
    AWAIT(is("HLEN", "worker:states", NULL, "3"));
    AWAIT(is("HLEN", "worker:assignments", NULL, "2"));
    masters[1].leads = false;
    asked = masters[1].asked;
    AWAIT(masters[1].asked > asked);
    (void)ask("DEL", "worker:assignments", NULL);
    masters[1].leads = true; /* as another master may have written meanwhile */
    AWAIT(is("HLEN", "worker:assignments", NULL, "2"));
    end_redis();
}

static void a_server_that_has_lost_its_data_gets_all_again(void **state)
{
    open_fleet();
    masters[0].leads = true;
    AWAIT(is("HLEN", "worker:assignments", NULL, "2"));
    end_redis();
    begin_redis();
    AWAIT(is("HLEN", "worker:assignments", NULL, "2"));
    AWAIT(is("HLEN", "worker:states", NULL, "2"));
    end_redis();
}

static void a_refusal_is_told_once_and_mended(void **state)
{
    open_fleet();
    (void)ask("SADD", "worker:assignments", "in the way");
    freeReplyObject(redisCommand(reader, "SET worker:states text"));
    freeReplyObject(redisCommand(reader, "CONFIG SET maxmemory 1"));
    masters[0].leads = true;
    AWAIT(failed > 0);
    freeReplyObject(redisCommand(reader, "CONFIG SET maxmemory 0"));
    AWAIT(is("HLEN", "worker:states", NULL, "2"));
    AWAIT(is("HLEN", "worker:assignments", NULL, "2"));
    assert_int_equal(failed, 1);
    end_redis();
}

static void what_is_no_single_server_is_refused(void **state)
{
    struct seed_names *ret;
    struct baton_error error;
    struct seed_names_config config = {.url = "redis+sentinel://h:1/service"};

    assert_int_equal(seed_names_open(&ret, &config, &error), BATON_ENOTSUP);
    config.url = "redis://:secret@h:port";
    assert_int_equal(seed_names_open(&ret, &config, &error), BATON_EINVAL);
    assert_null(strstr(error.message, "secret"));
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(int count, char **arguments)
{
    const struct CMUnitTest of_commands[] = {
        TEST(commands_of_other_programs_are_carried_out),
        TEST(wrong_and_other_commands_change_nothing),
    };
    const struct CMUnitTest of_names[] = {
        TEST(the_master_writes_the_names_of_the_protocol),
        TEST(what_changes_is_written),
        TEST(only_the_master_writes_and_a_new_one_writes_all),
        TEST(a_server_that_has_lost_its_data_gets_all_again),
        TEST(a_refusal_is_told_once_and_mended),
        TEST(what_is_no_single_server_is_refused),
    };
    int result;

    if (count != 2 || !stand_choose(arguments[1])) {
        return 64;
    }
    result = cmocka_run_group_tests(of_commands, NULL, NULL);
    if (strcmp(arguments[1], "memory") == 0) { /* they are the same with every provider */
        port = process_free_port();
        result += cmocka_run_group_tests(of_names, NULL, NULL);
    }
    stand_end();
    return result;
}

/* A program that may write to an election's keys and channels may write anything: values of another
 * type, huge ones, no JSON, clocks years ahead. An error event, or the call that reads the value,
 * reports it; the leader goes on, or leads again when the value is gone. */
#include "integration/redis/server.h"
#include "provider/group.h"
#include "provider/listener.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SHORT                                                                                      \
    "lease=600ms&max-lease=600ms&check-interval=100ms&process-lifetime=1500ms&guardian=off"
/* A server that reads a huge value is busy for a while; and where a leadership must last, a slow
 * machine shall not end it. */
#define PATIENT                                                                                    \
    "lease=20s&max-lease=20s&heartbeat-interval=500ms&check-interval=100ms&process-lifetime=2s&"   \
    "guardian=off&"                                                                                \
    "answer-timeout=10s"

enum { HUGE_BYTES = 70 * 1024 * 1024 }; /* more than an answer may have */

static struct server server;
static struct listener ours;

/* It has been there for long enough to have forgotten nothing, once its record is deleted too. */
static int begin(void **state)
{
    *state = &server;
    server_init(&server);
    server_start(&server);
    SERVER_AWAIT(!server_says(&server, "INFO server", "uptime_in_seconds:0\r") &&
                 !server_says(&server, "INFO server", "uptime_in_seconds:1\r"));
    return 0;
}

static void take_part(const char *query, const char *wanted)
{
    char url[256];

    server_trust(&server, "race");
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d?%s", server.port, query);
    listener_open(&ours, url, wanted);
}

/* Words with their lengths: what has NULs in it, or is long, has no format. */
static void tell_words(int count, const char **words, const size_t *lengths)
{
    redisContext *context = redisConnectUnix(server.socket);
    redisReply *reply = redisCommandArgv(context, count, words, lengths);

    assert_non_null(reply);
    if (reply->type == REDIS_REPLY_ERROR) {
        fail_msg("%s %s: %s", words[0], words[1], reply->str);
    }
    freeReplyObject(reply);
    redisFree(context);
}

/* A command whose words have no blanks. */
static void tell_line(const char *line)
{
    char copy[256];
    char *rest = copy;
    const char *words[8];
    int count = 0;

    snprintf(copy, sizeof(copy), "%s", line);
    for (char *word; count < 8 && (word = strsep(&rest, " "));) {
        words[count++] = word;
    }
    tell_words(count, words, NULL);
}

/* HSET with a huge value, or a huge field. */
static void set_huge(const char *key, const char *field, bool is_field)
{
    char *huge = malloc(HUGE_BYTES);
    const char *words[] = {"HSET", key, is_field ? huge : field, is_field ? "{}" : huge};
    size_t lengths[] = {4, strlen(key), is_field ? HUGE_BYTES : strlen(field),
                        is_field ? 2 : HUGE_BYTES};

    memset(huge, 'x', HUGE_BYTES);
    tell_words(4, words, lengths);
    free(huge);
}

/* ---- The lock, while somebody leads ---------------------------------------------------------- */

/* Doubles, with which scripts count, end there. */
#define NO_HIGHER "9007199254740991"

struct spoiled {
    const char *commands[3];
    const char *word;
    const char *cure;
};

static void spoil_and_cure(const struct spoiled *way, bool is_kept)
{
    uint64_t epoch;

    print_message("%s\n", way->commands[0]);
    GROUP_AWAIT(baton_is_leader(ours.election));
    epoch = baton_epoch(ours.election);
    listener_want(&ours, way->word);
    for (size_t i = 0; i < 3 && way->commands[i]; i++) {
        tell_line(way->commands[i]);
    }
    listener_await(&ours);
    if (!is_kept) {
        GROUP_AWAIT(!baton_is_leader(ours.election));
    }
    tell_line(way->cure);
    GROUP_AWAIT(baton_is_leader(ours.election));
    assert_true(is_kept ? baton_epoch(ours.election) == epoch : baton_epoch(ours.election) > epoch);
}

static void what_spoils_the_lock_is_told_until_it_is_gone(void **state)
{
    static const struct spoiled ways[] = {
        {{"LPUSH spoilt x", "RENAME spoilt race:master"}, "WRONGTYPE", "DEL race:master"},
        {{"DEL race:epoch", "SET race:epoch x"}, "WRONGTYPE", "DEL race:epoch"},
        {{"HSET race:epoch epoch 9007199254740991"}, "SPOILED", "DEL race:epoch"},
        {{"HSET race:epoch epoch 99999999999999999999999"}, "SPOILED", "DEL race:epoch"},
        {{"SET race:master \x1b[31mme"}, "\"?[31mme\" is no process's id", "DEL race:master"},
    };

    take_part(SHORT, "");
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        spoil_and_cure(&ways[i], false);
    }
    listener_close(&ours);
}

static void a_huge_lock_is_told_and_followed(void **state)
{
    take_part(SHORT, "is no process's id");
    GROUP_AWAIT(baton_is_leader(ours.election));
    server_tell(&server, "SETRANGE spoilt %d x", HUGE_BYTES);
    tell_line("RENAME spoilt race:master"); /* without the lifetime of ours */
    listener_await(&ours);
    GROUP_AWAIT(!baton_is_leader(ours.election)); /* the error comes a moment before */
    server_tell(&server, "DEL race:master");
    GROUP_AWAIT(baton_is_leader(ours.election));
    listener_close(&ours);
}

static void a_foreign_lock_without_a_lifetime_is_told(void **state)
{
    take_part(SHORT, "race:master has no lifetime");
    GROUP_AWAIT(baton_is_leader(ours.election));
    tell_line("SET race:master somebody");
    listener_await(&ours);
    GROUP_AWAIT(!baton_is_leader(ours.election));
    server_tell(&server, "DEL race:master");
    GROUP_AWAIT(baton_is_leader(ours.election));
    listener_close(&ours);
}

static void an_epoch_far_from_our_clock_is_told(void **state)
{
    take_part(SHORT, "ahead of this process's clock");
    GROUP_AWAIT(baton_is_leader(ours.election));
    server_tell(&server, "HSET race:epoch epoch 4000000000000"); /* of a server in the year 2096 */
    listener_await(&ours);
    GROUP_AWAIT(baton_epoch(ours.election) > 4000000000000);
    listener_close(&ours);
}

static void an_epoch_that_is_none_is_told_and_gone_on_from(void **state)
{
    static const char *const rows[] = {"garbage", "-7", "1e300", "nan", "0x10", "7.5", "\"\""};
    uint64_t epoch = 0;

    take_part(SHORT, "");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        GROUP_AWAIT(baton_is_leader(ours.election) && baton_epoch(ours.election) > epoch);
        epoch = baton_epoch(ours.election);
        listener_want(&ours, "which is no epoch");
        server_tell(&server, "HSET race:epoch epoch %s", rows[i]);
        server_tell(&server, "DEL race:master");
        listener_await(&ours);
    }
    GROUP_AWAIT(baton_is_leader(ours.election) && baton_epoch(ours.election) > epoch);
    listener_close(&ours);
}

/* Written over with each renewal, whatever they are. */
static void what_we_only_write_is_written_over(void **state)
{
    uint64_t epoch;

    take_part(PATIENT, "");
    GROUP_AWAIT(baton_is_leader(ours.election));
    epoch = baton_epoch(ours.election);
    tell_line("LPUSH spoilt x");
    tell_line("COPY spoilt race:master_process REPLACE");
    tell_line("RENAME spoilt race:heartbeat");
    SERVER_AWAIT(server_says(&server, "TYPE race:heartbeat", "string"));
    SERVER_AWAIT(server_says(&server, "TYPE race:master_process", "string"));
    assert_true(baton_is_leader(ours.election));
    assert_int_equal(baton_epoch(ours.election), epoch);
    listener_close(&ours);
}

/* ---- The registry ---------------------------------------------------------------------------- */

static size_t count_members(void)
{
    struct baton_member *members;
    size_t count;

    ASSERT_OK(baton_members(ours.election, &members, &count, failure));
    baton_members_free(members);
    return count;
}

static void an_entry_that_is_none_of_ours_is_told(void **state)
{
    static const char longest[] =
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    static const struct {
        const char *id, *json, *word;
    } rows[] = {
        {"x", "not-json", "\"x\" in race:processes is no JSON object"},
        {"x", "[[[[[[[[", "is no JSON object"},
        {"x", "", "is no JSON object"},
        {"x", "{\"identifier\":7}", "a field of another type"},
        {"x", "{\"capabilities\":[]}", "a field of another type"},
        {"x", "{\"lastSeen\":\"2096-10-02T07:06:40.000Z\"}", "in the future"},
        {"x", "{\"lastSeen\":4000000000000}", "in the future"},
        {"a\nb", "{}", "\"a?b\" in race:processes is no process's id"},
        {"", "{}", "is no process's id"},
        {longest, "{}", "is no process's id"},
    };
    uint64_t epoch;

    take_part(PATIENT, "");
    GROUP_AWAIT(baton_is_leader(ours.election));
    epoch = baton_epoch(ours.election);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *add[] = {"HSET", "race:processes", rows[i].id, rows[i].json};
        const char *remove[] = {"HDEL", "race:processes", rows[i].id};
        listener_want(&ours, rows[i].word);
        tell_words(4, add, NULL);
        listener_await(&ours);
        tell_words(3, remove, NULL);
        assert_int_equal(count_members(), 1); /* the same is told once for as long as it is there */
    }
    assert_true(baton_is_leader(ours.election));
    assert_int_equal(baton_epoch(ours.election), epoch);
    listener_close(&ours);
}

/* Of the memory in which scripts run: whatever one of them read was there. */
static long script_memory(void)
{
    redisReply *info = server_ask(&server, "INFO memory");
    const char *at = strstr(info->str, "used_memory_lua:");
    long bytes;

    assert_non_null(at);
    bytes = strtol(at + strlen("used_memory_lua:"), NULL, 10);
    freeReplyObject(info);
    return bytes;
}

static void a_huge_entry_is_told_and_costs_no_connection(void **state)
{
    uint64_t epoch;

    take_part(PATIENT, "says more of itself than is read");
    GROUP_AWAIT(baton_is_leader(ours.election));
    epoch = baton_epoch(ours.election);
    set_huge("race:processes", "x", false);
    listener_await(&ours);
    assert_true(script_memory() < HUGE_BYTES / 2); /* it was measured, and not read */
    listener_want(&ours, "is no process's id");
    set_huge("race:processes", NULL, true);
    listener_await(&ours);
    assert_true(baton_is_leader(ours.election));
    assert_int_equal(baton_epoch(ours.election), epoch);
    listener_close(&ours);
}

/* As many as a list of all of them would keep the server busy with. */
static void among_too_many_entries_ours_are_found(void **state)
{
    static const char fill[] =
        "for i = 1, 50000 do redis.call('HSET', KEYS[1], 'x' .. i, '{}') end";
    const char *add[] = {"EVAL", fill, "1", "race:processes"};
    static struct listener other;
    char url[256];

    take_part(PATIENT, "");
    GROUP_AWAIT(baton_is_leader(ours.election));
    tell_words(4, add, NULL);
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d?%s", server.port, PATIENT);
    listener_open(&other, url, "");
    GROUP_AWAIT(count_members() == 2);
    assert_true(baton_is_leader(ours.election));
    listener_close(&other);
    GROUP_AWAIT(count_members() == 1);
    listener_close(&ours);
}

static void a_registry_of_another_type_is_told(void **state)
{
    static const struct spoiled ways[] = {
        {{"DEL race:processes", "SET race:processes x"}, "WRONGTYPE", "DEL race:processes"},
        {{"DEL race:processes:expiry", "SET race:processes:expiry x"},
         "WRONGTYPE",
         "DEL race:processes:expiry"},
    };
    static const char *const keys[] = {"channels", "slaves"};

    take_part(PATIENT, "");
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        spoil_and_cure(&ways[i], true);
    }
    listener_close(&ours);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) { /* told to whoever registers */
        take_part(SHORT, "WRONGTYPE");
        GROUP_AWAIT(baton_is_leader(ours.election));
        server_tell(&server, "DEL race:%s", keys[i]);
        server_tell(&server, "SET race:%s x", keys[i]);
        ASSERT_OK(baton_cordon(ours.election, failure)); /* it follows, and says so there */
        listener_await(&ours);
        server_tell(&server, "DEL race:%s", keys[i]);
        ASSERT_OK(baton_uncordon(ours.election, failure));
        GROUP_AWAIT(baton_is_leader(ours.election));
        listener_close(&ours);
    }
}

/* ---- Heartbeats of the other layout ---------------------------------------------------------- */

static void a_heartbeat_years_ahead_or_of_another_type_is_told(void **state)
{
    server_tell(&server, "SET race:leader plain EX 300");
    take_part(SHORT "&layout=sovereign", "ahead of the server's clock"); /* it may be to come */
    server_tell(&server, "SET race:heartbeat:plain 4000000000000");
    listener_await(&ours);
    listener_want(&ours, "gave no heartbeat");
    server_tell(&server, "DEL race:heartbeat:plain");
    server_tell(&server, "LPUSH race:heartbeat:plain x");
    listener_await(&ours);
    listener_want(&ours, "ahead of the server's clock");
    server_tell(&server, "SET race:heartbeat:plain inf");
    listener_await(&ours);
    assert_false(baton_is_leader(ours.election));
    server_tell(&server, "DEL race:leader");
    GROUP_AWAIT(baton_is_leader(ours.election));
    listener_close(&ours);
}

/* ---- Channels -------------------------------------------------------------------------------- */

static void notices_of_others_change_nothing(void **state)
{
    static const char *const texts[] = {
        "released", "released %s", "taken 18446744073709551615 x", "taken -1 x",
        "members ", "hello",       "9007199254740991 3 1 key",
    };
    char *huge = malloc(1 << 20);
    uint64_t epoch;

    take_part(PATIENT, "");
    GROUP_AWAIT(baton_is_leader(ours.election));
    epoch = baton_epoch(ours.election);
    memset(huge, 'x', (1 << 20) - 1);
    huge[(1 << 20) - 1] = '\0';
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        server_tell(&server, "PUBLISH race:wake %s", texts[i]);
        server_tell(&server, "PUBLISH baton:state:changes %s", texts[i]);
    }
    server_tell(&server, "PUBLISH race:wake %s", huge);
    tell_words(3, (const char *[]){"PUBLISH", "race:wake", "released a\0b "},
               (const size_t[]){7, 9, 13});
    server_tell(&server, "PUBLISH baton:state:changes %s", huge);
    /* What comes after them is heard, so they were. */
    server_tell(&server, "HSET race:processes x not-json");
    listener_want(&ours, "is no JSON object");
    server_tell(&server, "PUBLISH race:wake members");
    listener_await(&ours);
    assert_true(baton_is_leader(ours.election));
    assert_int_equal(baton_epoch(ours.election), epoch);
    free(huge);
    listener_close(&ours);
}

/* ---- State ----------------------------------------------------------------------------------- */

static int get(const char *key)
{
    struct baton_value *value = NULL;
    int code = baton_get(ours.baton, key, &value, NULL);

    baton_values_free(value, value != NULL);
    return code;
}

static size_t list(const char *prefix)
{
    struct baton_value *values = NULL;
    size_t count = 0;

    ASSERT_OK(baton_list(ours.baton, prefix, &values, &count, failure));
    baton_values_free(values, count);
    return count;
}

static void put(const char *key)
{
    ASSERT_OK(baton_put(ours.baton, key, "good", 4, BATON_ANY_REVISION, 0, failure));
}

static void values_of_others_are_refused_and_left_out(void **state)
{
    struct baton_error error;

    take_part(PATIENT, "");
    GROUP_AWAIT(baton_is_leader(ours.election));
    put("a-good");
    server_tell(&server, "HSET baton:state:key:a-number d x r 18446744073709551615");
    server_tell(&server, "LPUSH baton:state:key:a-list x");
    server_tell(&server, "HSET baton:state:key:a-half d x");
    server_tell(&server, "HSET baton:state:key:a-huge r 1");
    set_huge("baton:state:key:a-huge", "d", false);
    server_tell(&server, "ZADD baton:state:index 0 a-number 0 a-list 0 a-half 0 a-huge");
    assert_int_equal(get("a-number"), BATON_EPROTO);
    assert_int_equal(get("a-list"), BATON_EPROTO);
    assert_int_equal(get("a-half"), BATON_EPROTO);
    assert_int_equal(get("a-huge"), BATON_EPROTO);
    assert_int_equal(list("a-"), 1);
    put("a-half"); /* ours again */
    assert_int_equal(get("a-half"), BATON_OK);
    assert_int_equal(list("a-"), 2);
    assert_true(baton_is_leader(ours.election));

    server_tell(&server, "DEL baton:state:index");
    server_tell(&server, "SET baton:state:index x");
    assert_int_equal(
        baton_list(ours.baton, "a-", &(struct baton_value *){NULL}, &(size_t){0}, NULL),
        BATON_EPROTO);
    server_tell(&server, "DEL baton:state:index baton:state:revision");
    server_tell(&server, "LPUSH baton:state:revision x");
    assert_int_equal(baton_put(ours.baton, "b", "x", 1, BATON_ANY_REVISION, 0, NULL), BATON_EPROTO);
    server_tell(&server, "DEL baton:state:revision");
    server_tell(&server, "SET baton:state:revision " NO_HIGHER);
    assert_int_equal(baton_put(ours.baton, "b", "x", 1, BATON_ANY_REVISION, 0, &error),
                     BATON_EUNAVAILABLE);
    assert_non_null(strstr(error.message, "SPOILED"));
    server_tell(&server, "SET baton:state:revision -1.5e99"); /* not ours: counted anew */
    put("b");
    assert_int_equal(get("b"), BATON_OK);
    listener_close(&ours);
}

struct watched {
    pthread_mutex_t lock;
    char latest[16]; /* "": gone */
    uint64_t revision;
};

static void on_change(struct baton *baton, const struct baton_value *value, void *userdata)
{
    struct watched *watched = userdata;

    pthread_mutex_lock(&watched->lock);
    snprintf(watched->latest, sizeof(watched->latest), "%.15s",
             value->data ? (const char *)value->data : "");
    watched->revision = value->revision;
    pthread_mutex_unlock(&watched->lock);
}

/* Returns the revision; 0: it was told something else last. */
static uint64_t told(struct watched *watched, const char *text)
{
    uint64_t revision;

    pthread_mutex_lock(&watched->lock);
    revision = strcmp(watched->latest, text) == 0 ? watched->revision : 0;
    pthread_mutex_unlock(&watched->lock);
    return revision;
}

/* What is published is believed, until a list or two say otherwise. */
static void a_change_that_somebody_made_up_is_set_right(void **state)
{
    static struct watched watched = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct baton_subscription *keys;
    uint64_t revision;

    take_part(SHORT, "");
    GROUP_AWAIT(baton_is_leader(ours.election));
    ASSERT_OK(baton_watch(&keys, ours.baton, "k", on_change, &watched, failure));
    put("k");
    GROUP_AWAIT((revision = told(&watched, "good")) != 0);
    tell_words(3, (const char *[]){"PUBLISH", "baton:state:changes", NO_HIGHER " 1 1 kbad"}, NULL);
    GROUP_AWAIT(told(&watched, "bad"));
    GROUP_AWAIT(told(&watched, "good") == revision);
    /* A server that has forgotten all gives no revision again. */
    server_tell(&server, "FLUSHDB");
    GROUP_AWAIT(told(&watched, "") != 0);
    ASSERT_OK(baton_put(ours.baton, "k", "anew", 4, 0, 0, failure));
    GROUP_AWAIT(told(&watched, "anew") > revision);
    baton_unsubscribe(keys);
    listener_close(&ours);
}

/* More than one answer may carry, of values that are all right. */
static void a_list_that_is_too_long_is_refused_and_costs_no_connection(void **state)
{
    enum { VALUES = 60, BYTES = 1024 * 1024 };
    static char data[BYTES];
    char key[32];
    uint64_t epoch;

    take_part(PATIENT, "");
    GROUP_AWAIT(baton_is_leader(ours.election));
    epoch = baton_epoch(ours.election);
    for (int i = 0; i < VALUES; i++) {
        snprintf(key, sizeof(key), "long-%02d", i);
        ASSERT_OK(baton_put(ours.baton, key, data, BYTES, 0, 0, failure));
    }
    assert_int_not_equal(
        baton_list(ours.baton, "long-", &(struct baton_value *){NULL}, &(size_t){0}, NULL),
        BATON_OK);
    assert_int_equal(list("long-0"), 10);
    assert_int_equal(baton_epoch(ours.election), epoch);
    listener_close(&ours);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, server_teardown)
    const struct CMUnitTest tests[] = {
        CASE(what_spoils_the_lock_is_told_until_it_is_gone),
        CASE(a_huge_lock_is_told_and_followed),
        CASE(a_foreign_lock_without_a_lifetime_is_told),
        CASE(an_epoch_far_from_our_clock_is_told),
        CASE(an_epoch_that_is_none_is_told_and_gone_on_from),
        CASE(what_we_only_write_is_written_over),
        CASE(an_entry_that_is_none_of_ours_is_told),
        CASE(a_huge_entry_is_told_and_costs_no_connection),
        CASE(among_too_many_entries_ours_are_found),
        CASE(a_registry_of_another_type_is_told),
        CASE(a_heartbeat_years_ahead_or_of_another_type_is_told),
        CASE(notices_of_others_change_nothing),
        CASE(values_of_others_are_refused_and_left_out),
        CASE(a_change_that_somebody_made_up_is_set_right),
        CASE(a_list_that_is_too_long_is_refused_and_costs_no_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

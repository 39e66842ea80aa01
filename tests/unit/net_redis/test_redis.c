/* Addresses, INFO and faults, byte by byte. */
#include "base/text.h"
#include "cmocka_all.h"
#include "net/redis/cluster.h"
#include "net/redis/reader.h"
#include "net/redis/redis.h"
#include "net/redis/sentinel.h"

#include <stdio.h>
#include <string.h>

static void an_address_is_taken_apart(void **state)
{
    static const struct {
        const char *url, *host, *user, *password;
        int port, database;
    } rows[] = {
        {"redis://localhost", "localhost", "", "", 6379, 0},
        {"redis://db", "db", "", "", 6379, 0},
        {"redis://db:7000/3?lease=1s", "db", "", "", 7000, 3},
        {"redis://:secret@db/", "db", "", "secret", 6379, 0},
        {"redis://me:p%40s:s@db:1", "db", "me", "p@s:s", 1, 0},
        {"redis://[::1]:6380/1", "::1", "", "", 6380, 1},
        {"redis://a@b@c", "c", "a@b", "", 6379, 0},
    };
    struct redis_address address;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(redis_address_parse(&address, rows[i].url, NULL), BATON_OK);
        assert_string_equal(address.host, rows[i].host);
        assert_string_equal(address.user, rows[i].user);
        assert_string_equal(address.password, rows[i].password);
        assert_int_equal(address.port, rows[i].port);
        assert_int_equal(address.database, rows[i].database);
    }
}

static void a_socket_is_taken_apart(void **state)
{
    struct redis_address address;
    struct baton_error error;

    assert_int_equal(redis_address_parse(&address, "unix:///run/r%20s?x=%00&db=7&db2=9", NULL), 0);
    assert_string_equal(address.path, "/run/r s");
    assert_int_equal(address.database, 7);
    assert_int_equal(redis_address_parse(&address, "redis+unix://me:geheim@/s", NULL), 0);
    assert_string_equal(address.path, "/s");
    assert_string_equal(address.user, "me");
    assert_string_equal(address.password, "geheim");
    assert_int_equal(redis_address_parse(&address, "unix://run/s", &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "unix:///"));
    assert_int_equal(redis_address_parse(&address, "unix://", &error), BATON_EINVAL);
    assert_int_equal(redis_address_parse(&address, "unix:///s?db=x", &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "db \"x\""));
}

static void a_service_is_taken_apart(void **state)
{
    static const char *const wrong[] = {"redis+sentinel://a,b", "redis+sentinel://a,b/?db=1",
                                        "redis+sentinel://a:x,b/s", "redis+sentinel://a/s/x",
                                        "redis+sentinel://1,2,3,4,5,6,7,8,9,10/s"};
    struct redis_address address;
    struct redis_address own;
    struct baton_error error;
    char name[64];

    assert_int_equal(redis_address_parse(&address,
                                         "redis+sentinel://me:geheim@a,b:7,[::1]:8/my%20s/3"
                                         "?sentinel-user=u&sentinel-password=p%2Fq",
                                         NULL),
                     BATON_OK);
    assert_string_equal(address.host, "");
    assert_int_equal(address.sentinel_count, 3);
    assert_string_equal(address.sentinels[0].host, "a");
    assert_int_equal(address.sentinels[0].port, 26379);
    assert_string_equal(address.sentinels[1].host, "b");
    assert_int_equal(address.sentinels[1].port, 7);
    assert_string_equal(address.sentinels[2].host, "::1");
    assert_string_equal(address.service, "my s");
    assert_int_equal(address.database, 3);
    assert_string_equal(address.user, "me");
    assert_string_equal(address.password, "geheim");
    redis_address_name(&address, name, sizeof(name));
    assert_string_equal(name, "service \"my s\"");
    redis_address_of_sentinel(&address, &own);
    assert_string_equal(own.host, "a");
    assert_string_equal(own.user, "u");
    assert_string_equal(own.password, "p/q");
    assert_int_equal(own.database, 0);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_not_equal(redis_address_parse(&address, wrong[i], &error), BATON_OK);
        assert_non_null(strstr(error.message, "Redis URL"));
    }
}

static void several_servers_are_taken_apart(void **state)
{
    struct redis_address address;

    assert_int_equal(
        redis_address_parse(&address, "redis://:p@a,b:7,[::1]/2?quorum=majority", NULL), BATON_OK);
    assert_int_equal(address.server_count, 3);
    assert_string_equal(address.host, "a");
    assert_int_equal(address.servers[0].port, 6379);
    assert_int_equal(address.servers[1].port, 7);
    assert_string_equal(address.servers[2].host, "::1");
    assert_int_equal(address.database, 2);
    assert_string_equal(address.password, "p");
    assert_true(address.wants_majority);
    assert_int_equal(redis_address_check(&address, NULL), BATON_OK);
    address.wants_majority = false;
    assert_int_equal(redis_address_check(&address, NULL), BATON_EINVAL);
}

static void a_switch_of_masters_is_taken_apart(void **state)
{
    static const char *const wrong[] = {
        "",       "ours a 1 b",    "ours a 1 b 2 c",   "theirs a 1 b 2", "ours a 1 b 0",
        "ours a", "ours a 1 b 2x", "ours a 1 b 65536", "ours a 1  2",    "ours a 1 b "};
    static const char right[] = "ours 10.0.0.1 6379 10.0.0.2 6380";
    char host[REDIS_HOST_MAX];
    int port;

    assert_true(sentinel_parse_switch("ours", right, sizeof(right) - 1, host, &port));
    assert_string_equal(host, "10.0.0.2");
    assert_int_equal(port, 6380);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_false(sentinel_parse_switch("ours", wrong[i], strlen(wrong[i]), host, &port));
    }
}

static void a_redirection_is_taken_apart(void **state)
{
    static const struct {
        const char *text, *host;
        unsigned slot;
        int port;
    } rows[] = {{"MOVED 3999 127.0.0.1:6381", "127.0.0.1", 3999, 6381},
                {"ASK 16383 ::1:7", "::1", 16383, 7},
                {"MOVED 0 :6379", "", 0, 6379},
                {"MOVED 0 ?:6379", "", 0, 6379}};
    static const char *const wrong[] = {"",
                                        "MOVED",
                                        "MOVED 1",
                                        "MOVED 1 h",
                                        "MOVED 16384 h:1",
                                        "MOVED -1 h:1",
                                        "MOVED 1 h:0",
                                        "MOVED 1 h:65536",
                                        "MOVED 1 h:x",
                                        "MOVED x h:1",
                                        "MOVEDX 1 h:1"};
    struct redis_host host;
    unsigned slot;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_true(
            redis_cluster_parse_redirection(rows[i].text, strlen(rows[i].text), &slot, &host));
        assert_int_equal(slot, rows[i].slot);
        assert_string_equal(host.host, rows[i].host);
        assert_int_equal(host.port, rows[i].port);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_false(redis_cluster_parse_redirection(wrong[i], strlen(wrong[i]), &slot, &host));
    }
}

static void tls_is_asked_for_by_the_scheme_alone(void **state)
{
    static const char *const wrong[] = {"redis://h?ca=/x", "unix:///s?verify=off",
                                        "rediss://h?verify=maybe"};
    struct redis_address address;
    struct baton_error error;

    assert_int_equal(redis_address_parse(&address, "redis://h", NULL), BATON_OK);
    assert_false(address.is_tls);
    assert_int_equal(redis_address_parse(&address, "rediss://h:1/2?lease=1s", NULL), BATON_OK);
    assert_true(address.is_tls);
    assert_false(address.tls.is_unverified);
    assert_int_equal(
        redis_address_parse(&address, "rediss://h?ca=/a%20b&cert=c&key=k&sni=n&verify=off", NULL),
        BATON_OK);
    assert_string_equal(address.tls.ca, "/a b");
    assert_string_equal(address.tls.certificate, "c");
    assert_string_equal(address.tls.key, "k");
    assert_string_equal(address.tls.name, "n");
    assert_true(address.tls.is_unverified);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(redis_address_parse(&address, wrong[i], &error), BATON_EINVAL);
    }
}

static void an_ipv6_address_without_brackets_is_refused_by_that_name(void **state)
{
    static const char *const urls[] = {"redis://::1:6379", "redis://::1", "redis://me:p@fe80::1/1"};
    struct redis_address address;
    struct baton_error error;

    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        assert_int_equal(redis_address_parse(&address, urls[i], &error), BATON_EINVAL);
        assert_string_equal(error.message, "Redis URL: write an IPv6 address as [ADDR]:PORT");
    }
}

static void a_wrong_address_is_refused_without_its_password(void **state)
{
    static const char *const urls[] = {
        "http://db",
        "redis://:geheim@db:99999",
        "redis://:geheim@db:x",
        "redis://:geheim@db:",
        "redis://db/-1",
        "redis://db/1x",
        "redis://[::1]x",
        "redis://%00@db",
        "redis://db:+12",
        "redis://geheim:x", /* what is behind the colon may be a password, too */
        "redis://me:geheim",
        "redis://me:geheim,db?quorum=majority",
        "redis://[::1]geheim",
        "redis://me:ge/heim@db",
        "redis://me:geheim/@db",
        "redis://me:geheim?@db",
        "redis://me:geheim#@db",
        "redis://me@there:geheim/x@db",
        "rediss://:geheim/@db:1/2",
        "redis+sentinel://me:geheim/@a,b/s",
        "unix://me:geheim/@/run/redis.sock",
    };
    struct redis_address address;
    struct baton_error error;

    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        assert_int_not_equal(redis_address_parse(&address, urls[i], &error), BATON_OK);
        if (strstr(error.message, "geheim") || strstr(error.message, "heim") ||
            !strstr(error.message, "Redis URL")) {
            fail_msg("%s: %s", urls[i], error.message);
        }
    }
}

static void a_password_that_is_not_encoded_is_told_to_be(void **state)
{
    struct redis_address address;
    struct baton_error error;

    assert_int_equal(redis_address_parse(&address, "redis://me:s3/cret@db", &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "%2F"));
    assert_null(strstr(error.message, "s3"));
    assert_int_equal(redis_address_parse(&address, "redis://me:s3%2Fcret@db", NULL), BATON_OK);
    assert_string_equal(address.password, "s3/cret");
    assert_int_equal(redis_address_parse(&address, "unix:///run/a@b/redis.sock", NULL), BATON_OK);
    assert_string_equal(address.path, "/run/a@b/redis.sock");
}

/* Localhost would be another server on every machine, each with a leader. */
static void an_empty_host_is_refused(void **state)
{
    static const char *const urls[] = {
        "redis://",      "redis:///1",   "redis://?lease=1s",      "rediss://",
        "redis://:6380", "redis://:p@",  "redis://me:p@/2",        "redis://[]",
        "redis://a,,b",  "redis://a,b,", "redis+sentinel:///ours", "redis+sentinel://a,,b/ours",
    };
    struct redis_address address;
    struct baton_error error;

    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        memset(&error, 0, sizeof(error));
        assert_int_not_equal(redis_address_parse(&address, urls[i], &error), BATON_OK);
        if (!strstr(error.message, "localhost")) {
            fail_msg("%s: %s", urls[i], error.message);
        }
    }
}

static void info_tells_who_the_server_is(void **state)
{
    static const char info[] = "# Server\r\nredis_version:7.0.15\r\nrun_id:abc\r\n"
                               "uptime_in_seconds:12\r\n# Replication\r\nrole:master\r\n"
                               "second_repl_offset:17\r\n";
    struct redis_identity identity;

    redis_identity_parse(&identity, info, sizeof(info) - 1);
    assert_string_equal(identity.run_id, "abc");
    assert_string_equal(identity.version, "7.0.15");
    assert_int_equal(identity.uptime.ns, SPAN_S(12).ns);
    assert_true(identity.is_master);
    assert_true(identity.was_promoted);
    for (size_t cut = 0; cut < sizeof(info) - 1; cut++) {
        redis_identity_parse(&identity, info, cut);
        assert_true(strlen(identity.run_id) <= 3);
    }
    redis_identity_parse(&identity, "role:slave\nsecond_repl_offset:-1\n", 33);
    assert_false(identity.is_master);
    assert_false(identity.was_promoted);
    assert_int_equal(identity.uptime.ns, 0);
}

static void faults_are_named_with_what_to_do(void **state)
{
    static const struct {
        const char *text;
        enum redis_fault fault;
        int code;
    } rows[] = {
        {"READONLY You can't write against a read only replica.", REDIS_READONLY,
         BATON_EUNAVAILABLE},
        {"NOAUTH Authentication required.", REDIS_NOAUTH, BATON_EAUTH},
        {"NOPERM this user has no permissions", REDIS_NOPERM, BATON_EAUTH},
        {"ERR The user executing the script can't run this", REDIS_NOPERM, BATON_EAUTH},
        {"OOM command not allowed", REDIS_OOM, BATON_EFULL},
        {"WRONGTYPE Operation against a key", REDIS_WRONGTYPE, BATON_EPROTO},
        {"LOADING Redis is loading", REDIS_LOADING, BATON_EUNAVAILABLE},
        {"LOADINGX is another word", REDIS_OTHER, BATON_EUNAVAILABLE},
        {"", REDIS_OTHER, BATON_EUNAVAILABLE},
    };
    struct baton_error error;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        redisReply reply = {.type = REDIS_REPLY_ERROR,
                            .str = (char *)rows[i].text,
                            .len = (__typeof__(reply.len))strlen(rows[i].text)};
        assert_int_equal(redis_fault_of(&reply), rows[i].fault);
        assert_int_equal(redis_fault_error(&reply, &error), rows[i].code);
        assert_non_null(strstr(error.message, rows[i].text));
    }
    assert_int_equal(redis_fault_error(NULL, &error), BATON_EUNAVAILABLE);
}

/* ---- Limits ---------------------------------------------------------------------------------- */

/* How many answers these bytes are; -1: they are refused. */
static int read_all(const char *bytes)
{
    struct redis_reader reader;
    redisReply *reply;
    int count = 0;

    assert_true(redis_reader_init(&reader));
    assert_true(redis_reader_feed(&reader, bytes, strlen(bytes)));
    for (;;) {
        if (!redis_reader_next(&reader, &reply)) {
            count = -1;
            break;
        }
        if (!reply) {
            break;
        }
        freeReplyObject(reply);
        count++;
    }
    redis_reader_fini(&reader);
    return count;
}

static void an_array_that_is_only_announced_takes_no_memory(void **state)
{
    assert_int_equal(read_all("*2\r\n:1\r\n*1\r\n:2\r\n*0\r\n+OK\r\n"), 3);
    assert_int_equal(read_all("*1048576\r\n:1\r\n"), 0);
    assert_int_equal(read_all("*1048577\r\n:1\r\n"), -1);
    assert_int_equal(read_all("*992019007\r\n"), -1);
    assert_int_equal(read_all("*2147483647\r\n"), -1);
    assert_int_equal(read_all("*9223372036854775807\r\n"), -1);
    assert_int_equal(read_all("*-2\r\n"), -1);
    /* All of one answer's together, and each answer anew. */
    assert_int_equal(read_all("*524288\r\n*524289\r\n"), -1);
    assert_int_equal(read_all("*1\r\n:1\r\n*1048576\r\n"), 1);
    /* Deeper than hiredis goes, and what is no protocol. */
    assert_int_equal(read_all("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"),
                     -1);
    assert_int_equal(read_all("HTTP/1.1 400 Bad Request\r\n"), -1);
}

/* The one answer that these bytes are; the caller frees it. */
static redisReply *answer(const char *bytes, size_t count)
{
    struct redis_reader reader;
    redisReply *reply;

    assert_true(redis_reader_init(&reader));
    assert_true(redis_reader_feed(&reader, bytes, count));
    assert_true(redis_reader_next(&reader, &reply));
    assert_non_null(reply);
    redis_reader_fini(&reader);
    return reply;
}

#define ANSWER(literal) answer(literal, sizeof(literal) - 1)

static void a_message_is_taken_apart(void **state)
{
    static const char *const others[] = {
        "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n",
        "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n:1\r\n",
        "*3\r\n$7\r\nmessage\r\n$-1\r\n$1\r\na\r\n",
        "*2\r\n$7\r\nmessage\r\n$1\r\na\r\n",
        "*3\r\n*0\r\n*0\r\n*0\r\n",
        "+PONG\r\n",
        "$-1\r\n",
    };
    const char *channel;
    const char *data;
    size_t bytes;
    redisReply *reply = ANSWER("*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$3\r\na\0b\r\n");

    assert_true(redis_parse_message(reply, &channel, &data, &bytes));
    assert_string_equal(channel, "news");
    assert_int_equal(bytes, 3);
    assert_memory_equal(data, "a\0b", 3);
    freeReplyObject(reply);
    reply = ANSWER("*3\r\n$7\r\nmessage\r\n$3\r\na\0b\r\n$0\r\n\r\n");
    assert_false(redis_parse_message(reply, &channel, &data, &bytes));
    freeReplyObject(reply);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        reply = answer(others[i], strlen(others[i]));
        assert_false(redis_parse_message(reply, &channel, &data, &bytes));
        freeReplyObject(reply);
    }
}

static void a_master_is_taken_apart(void **state)
{
    static const char *const others[] = {
        "*2\r\n$0\r\n\r\n$4\r\n6379\r\n",
        "*2\r\n$2\r\na \r\n$4\r\n6379\r\n",
        "*2\r\n$2\r\na\n\r\n$4\r\n6379\r\n",
        "*2\r\n$1\r\na\r\n$1\r\n0\r\n",
        "*2\r\n$1\r\na\r\n$5\r\n65536\r\n",
        "*2\r\n$1\r\na\r\n$2\r\n-1\r\n",
        "*2\r\n$1\r\na\r\n$2\r\n7x\r\n",
        "*2\r\n$1\r\na\r\n:7\r\n",
        "*2\r\n$-1\r\n$-1\r\n",
        "*1\r\n$1\r\na\r\n",
        "$1\r\na\r\n",
        "-ERR no\r\n",
    };
    char host[REDIS_HOST_MAX];
    char huge[512];
    int port;
    redisReply *reply = ANSWER("*2\r\n$9\r\n127.0.0.1\r\n$4\r\n6379\r\n");

    assert_true(sentinel_parse_master(reply, host, &port));
    assert_string_equal(host, "127.0.0.1");
    assert_int_equal(port, 6379);
    freeReplyObject(reply);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        reply = answer(others[i], strlen(others[i]));
        assert_false(sentinel_parse_master(reply, host, &port));
        freeReplyObject(reply);
    }
    snprintf(huge, sizeof(huge), "*2\r\n$256\r\n%0256d\r\n$1\r\n7\r\n", 1);
    reply = answer(huge, strlen(huge));
    assert_false(sentinel_parse_master(reply, host, &port));
    freeReplyObject(reply);
}

static void a_range_of_slots_is_taken_apart(void **state)
{
    static const char *const others[] = {
        "*3\r\n:-1\r\n:5\r\n*2\r\n$1\r\na\r\n:7\r\n",
        "*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\na\r\n:7\r\n",
        "*3\r\n:6\r\n:5\r\n*2\r\n$1\r\na\r\n:7\r\n",
        "*3\r\n:0\r\n:9223372036854775807\r\n*2\r\n$1\r\na\r\n:7\r\n",
        "*3\r\n$1\r\n0\r\n:5\r\n*2\r\n$1\r\na\r\n:7\r\n",
        "*3\r\n:0\r\n:5\r\n*2\r\n$1\r\na\r\n:0\r\n",
        "*3\r\n:0\r\n:5\r\n*2\r\n$1\r\na\r\n:65536\r\n",
        "*3\r\n:0\r\n:5\r\n*2\r\n$3\r\na b\r\n:7\r\n",
        "*3\r\n:0\r\n:5\r\n*2\r\n:1\r\n:7\r\n",
        "*3\r\n:0\r\n:5\r\n*1\r\n$1\r\na\r\n",
        "*3\r\n:0\r\n:5\r\n:7\r\n",
        "*2\r\n:0\r\n:5\r\n",
        "*-1\r\n",
    };
    static const char *const unnamed[] = {
        "*3\r\n:0\r\n:5\r\n*2\r\n$0\r\n\r\n:7\r\n",
        "*3\r\n:0\r\n:5\r\n*2\r\n$1\r\n?\r\n:7\r\n",
        "*3\r\n:0\r\n:5\r\n*2\r\n$-1\r\n:7\r\n",
    };
    struct cluster_range range;
    redisReply *reply = ANSWER("*3\r\n:0\r\n:16383\r\n*3\r\n$2\r\ndb\r\n:7000\r\n$2\r\nid\r\n");

    assert_true(redis_cluster_parse_range(&range, reply));
    assert_int_equal(range.first, 0);
    assert_int_equal(range.last, 16383);
    assert_string_equal(range.master.host, "db");
    assert_int_equal(range.master.port, 7000);
    freeReplyObject(reply);
    for (size_t i = 0; i < sizeof(unnamed) / sizeof(unnamed[0]); i++) {
        reply = answer(unnamed[i], strlen(unnamed[i]));
        assert_true(redis_cluster_parse_range(&range, reply));
        assert_string_equal(range.master.host, "");
        freeReplyObject(reply);
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        reply = answer(others[i], strlen(others[i]));
        assert_false(redis_cluster_parse_range(&range, reply));
        freeReplyObject(reply);
    }
}

static void what_others_wrote_is_cleaned_before_it_is_shown(void **state)
{
    static const struct {
        const char *bytes;
        size_t count;
        const char *text;
    } rows[] = {
        {"", 0, ""},
        {"plain", 5, "plain"},
        {"Zo\xc3\xab \xe2\x82\xac \xf0\x9f\x8e\xbc", 13,
         "Zo\xc3\xab \xe2\x82\xac \xf0\x9f\x8e\xbc"},
        {"a\0b\nc\x7f", 6, "a?b?c?"},
        {"\x1b[31m", 5, "?[31m"},
        {"\xff\xfe", 2, "??"},
        {"\xc0\x80", 2, "??"},           /* longer than it must be */
        {"\xed\xa0\x80", 3, "???"},      /* half a pair of UTF-16 */
        {"\xf4\x90\x80\x80", 4, "????"}, /* beyond the last character */
        {"\xc2\x9b", 2, "??"},           /* a control character of 8 bits */
        {"x\xe2\x82", 3, "x??"},         /* its end is missing */
        {"0123456789abcde", 15, "0123456789abcde"},
        {"0123456789abcdef", 16, "0123456789abcde"},
        {"0123456789abcd\xc3\xab", 16, "0123456789abcd"},
    };
    char text[16];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool is_clean = text_clean(text, sizeof(text), rows[i].bytes, rows[i].count);
        assert_string_equal(text, rows[i].text);
        assert_int_equal(is_clean, rows[i].count == strlen(text) &&
                                       memcmp(rows[i].bytes, text, rows[i].count) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_is_taken_apart),
        cmocka_unit_test(a_socket_is_taken_apart),
        cmocka_unit_test(a_service_is_taken_apart),
        cmocka_unit_test(several_servers_are_taken_apart),
        cmocka_unit_test(a_switch_of_masters_is_taken_apart),
        cmocka_unit_test(a_redirection_is_taken_apart),
        cmocka_unit_test(tls_is_asked_for_by_the_scheme_alone),
        cmocka_unit_test(an_ipv6_address_without_brackets_is_refused_by_that_name),
        cmocka_unit_test(a_wrong_address_is_refused_without_its_password),
        cmocka_unit_test(a_password_that_is_not_encoded_is_told_to_be),
        cmocka_unit_test(an_empty_host_is_refused),
        cmocka_unit_test(info_tells_who_the_server_is),
        cmocka_unit_test(faults_are_named_with_what_to_do),
        cmocka_unit_test(an_array_that_is_only_announced_takes_no_memory),
        cmocka_unit_test(a_message_is_taken_apart),
        cmocka_unit_test(a_master_is_taken_apart),
        cmocka_unit_test(a_range_of_slots_is_taken_apart),
        cmocka_unit_test(what_others_wrote_is_cleaned_before_it_is_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

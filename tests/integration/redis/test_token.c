/* The script that refuses whoever is late, in front of a write, on a real server. */
#include "cmocka_all.h"
#include "integration/redis/server.h"

#include <baton.h>

#include <stdio.h>
#include <string.h>

static struct server server;

static int begin(void **state)
{
    server_init(&server);
    server_start(&server);
    return 0;
}

static int end(void **state)
{
    server_fini(&server);
    return 0;
}

static bool writes(const char *epoch, const char *text)
{
    char script[1024];
    const char *words[] = {"EVAL", script, "2", "{report}:epoch", "{report}", epoch, text};
    redisContext *context = redisConnectUnix(server.socket);
    redisReply *reply;
    bool passed;

    snprintf(script, sizeof(script), "%s%s", baton_token_redis_script(),
             "return redis.call('SET', KEYS[2], ARGV[2])");
    reply = redisCommandArgv(context, 7, words, NULL);
    assert_non_null(reply);
    passed = reply->type == REDIS_REPLY_STATUS;
    if (!passed) {
        assert_int_equal(reply->type, REDIS_REPLY_ERROR);
        assert_memory_equal(reply->str, "STALE ", 6);
    }
    freeReplyObject(reply);
    redisFree(context);
    return passed;
}

static void a_late_writer_is_refused(void **state)
{
    assert_true(writes("1763712000000", "first"));
    assert_true(writes("1763712000000", "first, again"));
    assert_true(writes("1763712000001", "second"));
    assert_false(writes("1763712000000", "first, too late"));
    assert_true(server_says(&server, "GET {report}", "second"));
    assert_false(writes("nonsense", "x"));
    server_tell(&server, "SET {report}:epoch garbage");
    assert_false(writes("1763712000002", "y")); /* what is not understood lets nobody pass */
    assert_true(server_says(&server, "GET {report}", "second"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_late_writer_is_refused, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

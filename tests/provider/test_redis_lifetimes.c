/* usage: provider_redis_lifetimes WAY
 *
 * How entries of the registry end, on a real server: WAY is what it must choose by itself, hsetex
 * or hpexpire where fields of hashes have lifetimes, sorted-set where they have none. */
#include "integration/redis/server.h"
#include "lib/process.h"
#include "provider/group.h"
#include "provider/redis/scripts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIFETIME_MS = 3000 };

static const char *const keys[] = {"race:processes", "race:channels", "race:slaves"};

static struct server server;
static const char *way;

static int begin(void **state)
{
    server_init(&server);
    server_start(&server);
    server_tell(&server, "SET race:master somebody"); /* so that a member stays what it is */
    return 0;
}

static int end(void **state)
{
    server_fini(&server);
    return 0;
}

static bool has_lifetimes(void)
{
    return strcmp(way, "sorted-set") != 0;
}

static void open_member(struct baton **ret)
{
    char url[160];
    struct baton_election *election;

    snprintf(
        url, sizeof(url),
        "redis://127.0.0.1:%d?lease=1s&max-lease=1s&heartbeat-interval=100ms&process-lifetime=%dms"
        "&guardian=off",
        server.port, LIFETIME_MS);
    ASSERT_OK(baton_open(ret, url, NULL, failure));
    ASSERT_OK(baton_campaign(&election, *ret, "race", NULL, failure));
}

/* The one field of a hash; "": it has none, or more. */
static void take_field(const char *key, char ret[BATON_NAME_MAX])
{
    redisReply *reply = server_ask(&server, "HKEYS %s", key);

    snprintf(ret, BATON_NAME_MAX, "%s", reply->elements == 1 ? reply->element[0]->str : "");
    freeReplyObject(reply);
}

/* In milliseconds; -1: for ever; -2: there is no such field. */
static long long left_of(const char *key, const char *field)
{
    redisReply *reply = server_ask(&server, "HPTTL %s FIELDS 1 %s", key, field);
    long long left;

    assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
    left = reply->element[0]->integer;
    freeReplyObject(reply);
    return left;
}

static void entries_have_the_lifetime_of_their_process(void **state)
{
    struct baton *member;
    char field[BATON_NAME_MAX];

    open_member(&member);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        SERVER_AWAIT((take_field(keys[i], field), field[0]));
        if (has_lifetimes()) {
            assert_in_range(left_of(keys[i], field), 1, LIFETIME_MS);
        }
    }
    assert_true(server_number(&server, "ZRANGE race:processes:expiry 0 -1 WITHSCORES", field) > 0);
    baton_close(member);
    assert_false(server_says(&server, "HKEYS race:processes", field));
}

/* A renewal raises it: what is left of the entry's lifetime, or on a server without lifetimes the
 * time at which the entry ends. */
static long long lifetime_of(const char *field)
{
    return has_lifetimes()
               ? left_of(keys[0], field)
               : server_number(&server, "ZRANGE race:processes:expiry 0 -1 WITHSCORES", field);
}

static void a_member_that_goes_on_renews_its_entry(void **state)
{
    struct baton *member;
    char field[BATON_NAME_MAX];

    open_member(&member);
    SERVER_AWAIT((take_field(keys[0], field), field[0]));
    for (int renewals = 0; renewals < 3; renewals++) {
        long long before = lifetime_of(field);
        long long now = 0;
        SERVER_AWAIT((now = lifetime_of(field)) > before || (before = now, false));
    }
    assert_true(server_says(&server, "HKEYS race:channels", field));
    assert_true(server_says(&server, "HKEYS race:slaves", field));
    baton_close(member);
}

static int take_part(void *userdata)
{
    struct baton *member;

    open_member(&member);
    (void)pause();
    return 0;
}

/* No process of ours is left to sweep: a program that reads only these hashes needs no sweep. On a
 * server without lifetimes the entry stays until the next member sweeps. */
static void the_entry_of_a_killed_process_ends_by_itself(void **state)
{
    pid_t child;
    char field[BATON_NAME_MAX];

    if (!has_lifetimes()) {
        skip();
    }
    child = process_fork(take_part, NULL);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        SERVER_AWAIT((take_field(keys[i], field), field[0]));
    }
    process_end(child);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        SERVER_AWAIT(!server_says(&server, "HKEYS race:processes", field));
        SERVER_AWAIT(left_of(keys[i], field) == -2);
    }
}

/* ---- A server between the two ---------------------------------------------------------------- */

/* Stands before the script: the server says that it has no HSETEX, and everything else is its own,
 * as on those that have HPEXPIRE only. */
static const char hidden[] = "local real = redis\n"
                             "local redis = {call = real.call, pcall = function(name, info, word)\n"
                             "  if word == 'HSETEX' then return {false} end\n"
                             "  return real.pcall(name, info, word)\n"
                             "end}\n";

static void where_there_is_no_hsetex_it_is_hpexpire(void **state)
{
    static char text[8192];
    struct redis_script scripts[SCRIPT_COUNT];
    const char *words[] = {"EVAL",
                           text,
                           "6",
                           "race:processes",
                           "race:expiry",
                           "race:channels",
                           "race:wake",
                           "race:slaves",
                           "race:master_process",
                           "A",
                           "45000",
                           "worker:slave:A",
                           "slave",
                           "again",
                           "",
                           "{}",
                           "{}"};
    redisContext *context;

    if (!has_lifetimes()) {
        skip();
    }
    context = redisConnectUnix(server.socket);
    scripts_fill(scripts);
    snprintf(text, sizeof(text), "%s%s", hidden, scripts[SCRIPT_REGISTER].text);
    for (int again = 0; again < 2; again++) {
        redisReply *reply = redisCommandArgv(context, 17, words, NULL);
        assert_non_null(reply);
        if (reply->type == REDIS_REPLY_ERROR) {
            fail_msg("%s", reply->str);
        }
        assert_string_equal(reply->element[0]->str, "hpexpire");
        assert_int_equal(reply->element[1]->integer, 1);
        freeReplyObject(reply);
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
            assert_in_range(left_of(keys[i], "A"), 1, 45000);
        }
    }
    redisFree(context);
}

static int baton_main(void *userdata)
{
    char url[96];

    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", server.port);
    execl(BATON_PROGRAM, "baton", "node", "--provider", url, "--election", "race", "--node", "a",
          "--data", server.folder, (char *)NULL);
    return 127;
}

static void take_status(char *ret, size_t ret_bytes)
{
    char command[512];
    FILE *status;
    size_t bytes;

    snprintf(command, sizeof(command), "%s status --json --data %s 2>/dev/null", BATON_PROGRAM,
             server.folder);
    status = popen(command, "r");
    assert_non_null(status);
    bytes = fread(ret, 1, ret_bytes - 1, status);
    ret[bytes] = '\0';
    (void)pclose(status);
}

static void the_way_is_told_in_the_status(void **state)
{
    pid_t child = process_fork(baton_main, NULL);
    char status[4096];
    char wanted[64];

    snprintf(wanted, sizeof(wanted), "\"entries_end_by\":\"%s\"", way);
    SERVER_AWAIT((take_status(status, sizeof(status)), strstr(status, wanted)));
    process_end(child);
}

/* Neither leads: each knows of the other by its entry alone. */
static void another_max_lease_is_told_in_the_status(void **state)
{
    pid_t child = process_fork(baton_main, NULL);
    struct baton *member;
    char status[4096];

    open_member(&member);
    SERVER_AWAIT(
        (take_status(status, sizeof(status)), strstr(status, "\"other_max_lease_ms\":1000,") ||
                                                  strstr(status, "\"other_max_lease_ms\":1000}")));
    baton_close(member);
    process_end(child);
}

int main(int argc, char **argv)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        CASE(entries_have_the_lifetime_of_their_process),
        CASE(a_member_that_goes_on_renews_its_entry),
        CASE(the_entry_of_a_killed_process_ends_by_itself),
        CASE(where_there_is_no_hsetex_it_is_hpexpire),
        CASE(the_way_is_told_in_the_status),
        CASE(another_max_lease_is_told_in_the_status),
    };

    if (argc != 2) {
        fprintf(stderr, "usage: provider_redis_lifetimes WAY\n");
        return 64;
    }
    way = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What the scripts grant and refuse on real servers that were started, promoted and demoted: a
 * server that may have missed a lease gives none for as long as one could last. */
#include "integration/redis/server.h"
#include "lib/process.h"
#include "provider/group.h"
#include "provider/redis/scripts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG "600000" /* no test waits for that: what is granted was not waited for */

static struct server first, second;
static struct redis_script scripts[SCRIPT_COUNT];

static int begin(void **state)
{
    struct server *const servers[] = {&first, &second};

    scripts_fill(scripts);
    for (size_t i = 0; i < 2; i++) {
        server_init(servers[i]);
        server_set(servers[i], "repl-diskless-sync-delay", "0");
        server_start(servers[i]);
    }
    return 0;
}

static int end(void **state)
{
    server_fini(&first);
    server_fini(&second);
    return 0;
}

/* ---- Scripts --------------------------------------------------------------------------------- */

struct answer {
    long long outcome; /* ANSWER_… */
    long long epoch;
};

static const char *lock_key = "e:master";

static struct answer run(const struct server *server, enum script_name script, const char *keys,
                         const char *arguments)
{
    const char *const names[] = {lock_key, "e:heartbeat", "e:epoch", "e:wake"};
    const char *words[24] = {"EVAL", scripts[script].text, keys};
    int count = 3 + (keys[0] - '0');
    struct answer answer = {0};
    char copy[256];
    char *rest = copy;
    redisContext *context = redisConnectUnix(server->socket);
    redisReply *reply;

    memcpy(&words[3], names, sizeof(names));
    snprintf(copy, sizeof(copy), "%s", arguments);
    for (char *word; (word = strsep(&rest, " "));) {
        words[count++] = word;
    }
    reply = redisCommandArgv(context, count, words, NULL);
    assert_non_null(reply);
    if (reply->type == REDIS_REPLY_ERROR) {
        fail_msg("%s", reply->str);
    }
    answer.outcome = reply->type == REDIS_REPLY_ARRAY ? reply->element[0]->integer : reply->integer;
    answer.epoch = reply->type == REDIS_REPLY_ARRAY ? reply->element[1]->integer : 0;
    freeReplyObject(reply);
    redisFree(context);
    return answer;
}

static struct answer take(const struct server *server, const char *who, long long least)
{
    char arguments[128];

    snprintf(arguments, sizeof(arguments), "%s " LONG " %lld " LONG "  0  " LONG " " LONG " 0", who,
             least);
    return run(server, SCRIPT_TAKE, "4", arguments);
}

static struct answer take_for(const struct server *server, const char *who, const char *lease_ms,
                              const char *max_lease_ms)
{
    char arguments[128];

    snprintf(arguments, sizeof(arguments), "%s %s 0 %s  0  %s %s 0", who, lease_ms, lease_ms,
             max_lease_ms, max_lease_ms);
    return run(server, SCRIPT_TAKE, "4", arguments);
}

static struct answer renew(const struct server *server, const char *who, long long epoch,
                           const char *history)
{
    char arguments[128];

    snprintf(arguments, sizeof(arguments), "%s " LONG " %lld %s " LONG "  " LONG, who, epoch,
             history);
    return run(server, SCRIPT_RENEW, "3", arguments);
}

static struct answer release(const struct server *server, const char *who, long long epoch)
{
    char arguments[128];

    snprintf(arguments, sizeof(arguments), "%s %lld released", who, epoch);
    return run(server, SCRIPT_RELEASE, "4", arguments);
}

/* ---- Servers --------------------------------------------------------------------------------- */

static void follow(const struct server *server, const struct server *master)
{
    server_tell(server, "REPLICAOF 127.0.0.1 %d", master->port);
    SERVER_AWAIT(server_says(server, "INFO replication", "master_link_status:up"));
}

/* What the first has, its replica has too. */
static void await_copy(void)
{
    redisReply *master = server_ask(&first, "GET e:master");
    char id[16];

    snprintf(id, sizeof(id), "%s", master->str);
    freeReplyObject(master);
    SERVER_AWAIT(server_says(&second, "GET e:master", id));
}

static void lead(const struct server *server)
{
    server_tell(server, "REPLICAOF NO ONE");
}

/* A has it at the first, and the second knows. */
static struct answer take_at_both(void)
{
    struct answer granted;

    follow(&second, &first);
    server_trust(&first, "e");
    granted = take(&first, "A", 0);
    await_copy();
    return granted;
}

/* ---- What is shown --------------------------------------------------------------------------- */

static void a_server_that_has_just_begun_gives_none(void **state)
{
    assert_int_equal(take(&first, "A", 0).outcome, ANSWER_NOT_YET);
    assert_int_equal(take(&first, "A", 0).outcome, ANSWER_NOT_YET);
    server_trust(&first, "e");
    assert_int_equal(take(&first, "A", 0).outcome, ANSWER_GRANTED);
    assert_int_equal(take(&first, "B", 0).outcome, ANSWER_HELD);
}

static void a_restart_with_old_data_gives_none(void **state)
{
    struct answer granted;

    server_trust(&first, "e");
    granted = take(&first, "A", 0);
    assert_int_equal(release(&first, "A", granted.epoch).outcome, 1);
    server_tell(&first, "SAVE");
    server_kill(&first);
    server_start(&first);
    SERVER_AWAIT(server_says(&first, "HGET e:epoch most", LONG));
    assert_int_equal(take(&first, "B", 0).outcome, ANSWER_NOT_YET);
}

static void a_promoted_replica_gives_none_not_even_to_whoever_it_thinks_has_it(void **state)
{
    struct answer ours = take_at_both();
    char history[SERVER_HISTORY_BYTES];

    lead(&second);
    /* What the replica does not see: A gave it back, B has it. */
    assert_int_equal(release(&first, "A", ours.epoch).outcome, 1);
    assert_int_equal(take(&first, "B", 0).outcome, ANSWER_GRANTED);
    assert_true(server_says(&second, "GET e:master", "A"));
    assert_int_equal(take(&second, "A", ours.epoch).outcome, ANSWER_NOT_YET);
    assert_int_equal(take(&second, "A", 0).outcome, ANSWER_NOT_YET); /* nor as an answer lost */
    assert_int_equal(take(&second, "C", 0).outcome, ANSWER_HELD);
    server_tell(&second, "DEL e:master");
    assert_int_equal(take(&second, "C", 0).outcome, ANSWER_NOT_YET);
    server_history(&second, history);
    assert_true(server_says(&second, "HGET e:epoch server", history));
}

static void whoever_still_holds_it_renews_and_hands_on_at_once(void **state)
{
    struct answer ours = take_at_both();
    char history[SERVER_HISTORY_BYTES];

    server_kill(&first);
    lead(&second);
    server_history(&second, history);
    assert_int_equal(renew(&second, "A", ours.epoch, history).outcome, ANSWER_GRANTED);
    assert_int_equal(release(&second, "A", ours.epoch).outcome, 1);
    assert_int_equal(take(&second, "B", 0).outcome, ANSWER_GRANTED);
}

static void a_renewal_that_tells_an_old_history_ends_no_waiting(void **state)
{
    struct answer ours = take_at_both();
    char history[SERVER_HISTORY_BYTES];

    server_history(&second, history); /* of its master, as of now */
    lead(&second);
    assert_int_equal(renew(&second, "A", ours.epoch, history).outcome, ANSWER_GRANTED);
    assert_int_equal(renew(&second, "A", ours.epoch, "").outcome, ANSWER_GRANTED);
    assert_int_equal(release(&second, "A", ours.epoch).outcome, 1);
    assert_int_equal(take(&second, "B", 0).outcome, ANSWER_NOT_YET);
}

/* The same process all along, and its own record: what happened while it followed is not in it. */
static void a_second_promotion_of_one_process_gives_none(void **state)
{
    struct answer ours;

    server_trust(&first, "e");
    ours = take(&first, "A", 0);
    assert_int_equal(release(&first, "A", ours.epoch).outcome, 1);
    follow(&second, &first);
    lead(&second);
    follow(&first, &second);
    lead(&first);
    assert_int_equal(take(&first, "B", 0).outcome, ANSWER_NOT_YET);
}

static bool has_run_for(const struct server *server, int seconds)
{
    redisReply *info = server_ask(server, "INFO server");
    const char *at = strstr(info->str, "uptime_in_seconds:");
    bool has = at && strtol(at + strlen("uptime_in_seconds:"), NULL, 10) >= seconds;

    freeReplyObject(info);
    return has;
}

static void a_promoted_replica_that_knows_nothing_gives_none(void **state)
{
    SERVER_AWAIT(has_run_for(&first, 2));
    assert_int_equal(take_for(&first, "A", "900", "900").outcome, ANSWER_GRANTED);
    server_tell(&first, "FLUSHALL");
    follow(&second, &first);
    lead(&second);
    SERVER_AWAIT(has_run_for(&second, 2));
    assert_int_equal(take_for(&second, "A", "900", "900").outcome, ANSWER_NOT_YET);
}

static void a_time_from_the_future_is_not_waited_for(void **state)
{
    char history[SERVER_HISTORY_BYTES];

    server_history(&first, history);
    server_tell(&first, "HSET e:epoch server %s since 99999999999999", history);
    assert_int_equal(take_for(&first, "A", "1", "1").outcome, ANSWER_NOT_YET);
    SERVER_AWAIT(take_for(&first, "A", "1", "1").outcome == ANSWER_GRANTED);
}

/* ---- Leases of different lengths ------------------------------------------------------------- */

/* The lease that the server lost may have been another one's, and longer than the asker's. */
static void a_server_that_began_less_than_the_longest_lease_ago_gives_none(void **state)
{
    SERVER_AWAIT(has_run_for(&first, 2));
    assert_int_equal(take_for(&first, "B", "900", LONG).outcome, ANSWER_NOT_YET);
    assert_int_equal(take_for(&first, "B", "900", "900").outcome, ANSWER_GRANTED);
}

/* B does not know what A's longest lease may be; the record does. */
static void after_another_history_the_recorded_longest_lease_is_waited_for(void **state)
{
    server_trust(&first, "e");
    assert_int_equal(take(&first, "A", 0).outcome, ANSWER_GRANTED);
    server_tell(&first, "DEL e:master");
    server_tell(&first, "HSET e:epoch server another");
    assert_int_equal(take_for(&first, "B", "1", "1").outcome, ANSWER_NOT_YET);
    server_pause();
    assert_int_equal(take_for(&first, "B", "1", "1").outcome, ANSWER_NOT_YET);
}

/* ---- A peer of seed 001, whose EXPIRE comes late --------------------------------------------- */

static struct answer take_from_a_peer(void)
{
    return run(&first, SCRIPT_TAKE, "4",
               "A " LONG " 0 " LONG " e:heartbeat: 0  " LONG " " LONG " " LONG);
}

static void a_peers_lock_that_ran_out_is_not_there_for_its_late_expire(void **state)
{
    redisReply *reply;

    server_trust(&first, "e");
    server_tell(&first, "SET e:master P PX 300");
    assert_int_equal(take_from_a_peer().outcome, ANSWER_HELD); /* and P has read "P" */
    SERVER_AWAIT(take_from_a_peer().outcome == ANSWER_NOT_YET);
    reply = server_ask(&first, "EXPIRE e:master 30");
    assert_int_equal(reply->integer, 0); /* P leads no more, and knows it */
    freeReplyObject(reply);
}

static void a_peers_lock_that_was_deleted_is_taken_at_once(void **state)
{
    server_trust(&first, "e");
    server_tell(&first, "SET e:master P PX " LONG);
    assert_int_equal(take_from_a_peer().outcome, ANSWER_HELD);
    server_tell(&first, "DEL e:master");
    assert_int_equal(take_from_a_peer().outcome, ANSWER_GRANTED);
}

static struct answer take_as_sovereign(const char *who)
{
    struct answer answer;

    lock_key = "e:leader";
    answer = take(&first, who, 0);
    lock_key = "e:master";
    return answer;
}

static void a_lock_of_another_layout_is_a_lock(void **state)
{
    char history[SERVER_HISTORY_BYTES];
    struct answer ours;

    server_trust(&first, "e");
    server_history(&first, history);
    ours = take(&first, "A", 0);
    assert_int_equal(take_as_sovereign("B").outcome, ANSWER_HELD);
    assert_int_equal(take_as_sovereign("B").epoch, ours.epoch);
    assert_int_equal(release(&first, "A", ours.epoch).outcome, 1);
    assert_true(take_as_sovereign("B").epoch > ours.epoch);
    assert_int_equal(take(&first, "A", 0).outcome, ANSWER_HELD);
    server_tell(&first, "DEL e:leader"); /* it ran out */
    ours = take(&first, "A", 0);
    assert_int_equal(ours.outcome, ANSWER_GRANTED);
    server_tell(&first, "FLUSHALL");
    assert_int_equal(renew(&first, "A", ours.epoch, history).outcome, ANSWER_GRANTED);
    assert_int_equal(take_as_sovereign("B").outcome, ANSWER_HELD);
}

/* ---- A leader whose lock the server has lost ------------------------------------------------- */

static void a_leader_has_its_lock_back_in_its_epoch_from_a_server_that_came_back_empty(void **state)
{
    char history[SERVER_HISTORY_BYTES];
    struct answer ours;
    struct answer again;

    server_trust(&first, "e");
    ours = take(&first, "A", 0);
    server_kill(&first);
    server_start(&first);
    server_history(&first, history);
    assert_int_equal(take(&first, "B", 0).outcome, ANSWER_NOT_YET);
    again = renew(&first, "A", ours.epoch, history);
    assert_int_equal(again.outcome, ANSWER_GRANTED);
    assert_int_equal(again.epoch, ours.epoch);
    assert_int_equal(take(&first, "B", 0).outcome, ANSWER_HELD);
    assert_int_equal(release(&first, "A", ours.epoch).outcome, 1);
    assert_true(take(&first, "B", 0).epoch > ours.epoch);
}

static void a_late_renewal_does_not_bring_back_what_was_released(void **state)
{
    char history[SERVER_HISTORY_BYTES];
    struct answer ours;

    server_trust(&first, "e");
    server_history(&first, history);
    ours = take(&first, "A", 0);
    assert_int_equal(release(&first, "A", ours.epoch).outcome, 1);
    assert_int_equal(renew(&first, "A", ours.epoch, history).outcome, ANSWER_FREE);
    assert_int_equal(take(&first, "B", 0).outcome, ANSWER_GRANTED);
}

static void a_late_renewal_does_not_bring_back_what_another_one_had_since(void **state)
{
    char history[SERVER_HISTORY_BYTES];
    struct answer ours;
    struct answer theirs;

    server_trust(&first, "e");
    server_history(&first, history);
    ours = take(&first, "A", 0);
    server_tell(&first, "DEL e:master");
    theirs = take(&first, "B", 0);
    server_tell(&first, "DEL e:master");
    assert_int_equal(renew(&first, "A", ours.epoch, history).outcome, ANSWER_FREE);
    assert_int_equal(renew(&first, "B", theirs.epoch, history).outcome, ANSWER_GRANTED);
}

/* ---- Lists ----------------------------------------------------------------------------------- */

static redisReply *ask(redisContext *context, int count, const char **words)
{
    redisReply *reply = redisCommandArgv(context, count, words, NULL);

    assert_non_null(reply);
    if (reply->type == REDIS_REPLY_ERROR) {
        fail_msg("%s: %s", words[0], reply->str);
    }
    return reply;
}

static void put(redisContext *context, const char *name)
{
    char key[32];
    const char *value[] = {"HSET", key, "d", "data", "r", "1"};
    const char *entry[] = {"ZADD", "index", "0", name};

    (void)snprintf(key, sizeof(key), "key:%s", name);
    freeReplyObject(ask(context, 6, value));
    freeReplyObject(ask(context, 4, entry));
}

/* How many names the script lists: all those that begin with the prefix. */
static size_t count_listed(redisContext *context, const char *prefix)
{
    const char *words[] = {"EVAL", scripts[SCRIPT_LIST].text, "1", "index", prefix, "key:"};
    redisReply *reply = ask(context, 6, words);
    size_t count = reply->elements / 3;

    for (size_t i = 0; i < count; i++) {
        assert_int_equal(strncmp(reply->element[3 * i]->str, prefix, strlen(prefix)), 0);
    }
    freeReplyObject(reply);
    return count;
}

static void a_list_has_all_names_that_begin_with_the_prefix(void **state)
{
    static const char *const names[] = {"p",          "p/", "p/a", "p/a\xff", "p/\xff",
                                        "p/\xff\xff", "p0", "q",   "\xff",    "\xff\xff/"};
    redisContext *context = redisConnectUnix(first.socket);

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        put(context, names[i]);
    }
    assert_int_equal(count_listed(context, ""), sizeof(names) / sizeof(names[0]));
    assert_int_equal(count_listed(context, "p"), 7);
    assert_int_equal(count_listed(context, "p/"), 5);
    assert_int_equal(count_listed(context, "p/\xff"), 2);
    assert_int_equal(count_listed(context, "p/b"), 0);
    assert_int_equal(count_listed(context, "\xff"), 2);
    redisFree(context);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        CASE(a_server_that_has_just_begun_gives_none),
        CASE(a_restart_with_old_data_gives_none),
        CASE(a_promoted_replica_gives_none_not_even_to_whoever_it_thinks_has_it),
        CASE(whoever_still_holds_it_renews_and_hands_on_at_once),
        CASE(a_renewal_that_tells_an_old_history_ends_no_waiting),
        CASE(a_second_promotion_of_one_process_gives_none),
        CASE(a_promoted_replica_that_knows_nothing_gives_none),
        CASE(a_time_from_the_future_is_not_waited_for),
        CASE(a_server_that_began_less_than_the_longest_lease_ago_gives_none),
        CASE(after_another_history_the_recorded_longest_lease_is_waited_for),
        CASE(a_peers_lock_that_ran_out_is_not_there_for_its_late_expire),
        CASE(a_peers_lock_that_was_deleted_is_taken_at_once),
        CASE(a_lock_of_another_layout_is_a_lock),
        CASE(a_leader_has_its_lock_back_in_its_epoch_from_a_server_that_came_back_empty),
        CASE(a_late_renewal_does_not_bring_back_what_was_released),
        CASE(a_late_renewal_does_not_bring_back_what_another_one_had_since),
        CASE(a_list_has_all_names_that_begin_with_the_prefix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

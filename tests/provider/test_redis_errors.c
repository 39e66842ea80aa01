/* Each error that a real server can answer: an error event names it, the process goes on, and the
 * error ends when its cause ends. */
#include "integration/redis/server.h"
#include "lib/process.h"
#include "provider/group.h"
#include "provider/listener.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct server server;

/* A member that waits for one word, at our server. */
static void open_at(struct listener *listener, const char *wanted, const char *user)
{
    char url[256];

    snprintf(url, sizeof(url),
             "redis://"
             "%s127.0.0.1:%d?lease=600ms&max-lease=600ms&check-interval=100ms&answer-timeout=300ms&"
             "guardian=off",
             user, server.port);
    listener_open(listener, url, wanted);
}

/* One trouble is told once, and that may be before anybody listens: then from the beginning. */
static void open_and_await(struct listener *listener, const char *wanted, const char *user)
{
    open_at(listener, wanted, user);
    for (int looks = 0; !listener->is_there; looks++) {
        if (looks % 500 == 499) {
            listener_close(listener);
            open_at(listener, wanted, user);
        }
        assert_true(looks < PATIENCE_MS);
        group_pause();
    }
    listener_await(listener);
}

/* ---- What a server that is led on may come to say -------------------------------------------- */

struct way {
    const char *word;
    void (*cause)(void);
    void (*cure)(void);
    bool can_renew; /* all the same */
};

static void become_replica(void)
{
    server_tell(&server, "REPLICAOF 127.0.0.1 %d", process_free_port());
}

static void become_silent_replica(void)
{
    server_tell(&server, "CONFIG SET replica-serve-stale-data no");
    become_replica();
}

static void become_master(void)
{
    server_tell(&server, "REPLICAOF NO ONE");
}

static void fill_memory(void)
{
    server_tell(&server, "CONFIG SET maxmemory 1");
}

static void free_memory(void)
{
    server_tell(&server, "CONFIG SET maxmemory 0");
}

static void want_replicas(void)
{
    server_tell(&server, "CONFIG SET min-replicas-to-write 1");
}

static void want_no_replicas(void)
{
    server_tell(&server, "CONFIG SET min-replicas-to-write 0");
}

static redisContext *busy;

/* A script without an end, whose answer nobody waits for. */
static void be_busy(void)
{
    server_tell(&server, "CONFIG SET busy-reply-threshold 50");
    busy = redisConnectUnix(server.socket);
    int done = 0;
    assert_int_equal(redisAppendCommand(busy, "EVAL %s 0", "while true do end"), REDIS_OK);
    while (!done) {
        assert_int_equal(redisBufferWrite(busy, &done), REDIS_OK);
    }
}

static void end_script(void)
{
    redisReply *reply;

    SERVER_AWAIT(server_says(&server, "SCRIPT KILL", "OK"));
    assert_int_equal(redisGetReply(busy, (void **)&reply), REDIS_OK);
    freeReplyObject(reply);
    redisFree(busy);
}

static void lose_disk(void)
{
    char path[192];

    snprintf(path, sizeof(path), "%s/dump.rdb", server.folder); /* where the file is to be */
    assert_int_equal(mkdir(path, 0700), 0);
    server_tell(&server, "CONFIG SET save %s", "900 1");
    server_tell(&server, "BGSAVE");
    SERVER_AWAIT(server_says(&server, "INFO persistence", "rdb_last_bgsave_status:err"));
}

static void do_without_disk(void)
{
    server_tell(&server, "CONFIG SET stop-writes-on-bgsave-error no");
}

static void spoil_lock(void)
{
    server_tell(&server, "DEL race:master");
    server_tell(&server, "LPUSH race:master x");
}

static void clear_lock(void)
{
    server_tell(&server, "DEL race:master");
}

static void stop_answering(void)
{
    assert_int_equal(kill(server.pid, SIGSTOP), 0);
}

static void go_on_answering(void)
{
    assert_int_equal(kill(server.pid, SIGCONT), 0);
}

/* It leads; the server begins to refuse; the lease ends by the clock; the server relents. */
static void whatever_it_says_is_named_and_over_with_its_cause(void **state)
{
    static const struct way ways[] = {
        {"READONLY", become_replica, become_master, false},
        {"MASTERDOWN", become_silent_replica, become_master, false},
        {"OOM", fill_memory, free_memory, true},
        {"NOREPLICAS", want_replicas, want_no_replicas, false},
        {"BUSY", be_busy, end_script, false},
        {"WRONGTYPE", spoil_lock, clear_lock, false},
        {"no answer in time", stop_answering, go_on_answering, false},
        {"MISCONF", lose_disk, do_without_disk, false},
    };

    server_start(&server);
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        static struct listener listener;
        uint64_t epoch;
        print_message("%s\n", ways[i].word);
        open_at(&listener, ways[i].word, "");
        GROUP_AWAIT(baton_is_leader(listener.election));
        epoch = baton_epoch(listener.election);
        ways[i].cause();
        listener_await(&listener);
        GROUP_AWAIT(ways[i].can_renew || !baton_is_leader(listener.election));
        ways[i].cure();
        GROUP_AWAIT(baton_is_leader(listener.election));
        assert_int_equal(baton_epoch(listener.election) == epoch, ways[i].can_renew);
        listener_close(&listener);
    }
}

/* ---- What it says to those who come ---------------------------------------------------------- */

static void a_missing_or_wrong_password_is_named(void **state)
{
    static const struct {
        const char *user, *word;
    } rows[] = {{"", "NOAUTH"}, {":geheimer@", "WRONGPASS"}, {"me:geheim@", "WRONGPASS"}};

    server_set(&server, "requirepass", "geheim");
    server_start(&server);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        static struct listener listener;
        open_and_await(&listener, rows[i].word, rows[i].user);
        assert_false(baton_is_leader(listener.election));
        listener_close(&listener);
    }
}

/* Whoever begins to listen late hears of it all the same. */
static void a_trouble_that_lasts_is_told_again(void **state)
{
    static struct listener listener;

    server_set(&server, "requirepass", "geheim");
    server_start(&server);
    open_and_await(&listener, "NOAUTH", "");
    listener.is_there = false;
    listener_await(&listener);
    listener_close(&listener);
}

/* A server that begins with data to read, and answers meanwhile. */
static void loading_is_named_and_waited_for(void **state)
{
    static struct listener listener;

    server_set(&server, "enable-debug-command", "yes");
    server_set(&server, "loading-process-events-interval-bytes", "1024");
    server_start(&server);
    server_tell(&server, "DEBUG POPULATE 20000");
    server_tell(&server, "SAVE");
    server_kill(&server);
    server_set(&server, "key-load-delay", "10000"); /* microseconds each: minutes in all */
    server_start(&server);
    open_and_await(&listener, "LOADING", "");
    assert_false(baton_is_leader(listener.election));
    server_kill(&server);
    server_set(&server, "key-load-delay", "0");
    server_start(&server);
    GROUP_AWAIT(baton_is_leader(listener.election));
    listener_close(&listener);
}

int main(void)
{
#define CASE(name)                                                                                 \
    cmocka_unit_test_prestate_setup_teardown(name, server_setup, server_teardown, &server)
    const struct CMUnitTest tests[] = {
        CASE(whatever_it_says_is_named_and_over_with_its_cause),
        CASE(a_missing_or_wrong_password_is_named),
        CASE(a_trouble_that_lasts_is_told_again),
        CASE(loading_is_named_and_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

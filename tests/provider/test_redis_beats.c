/* The commands that the registry's heartbeats of many elections cost, counted by the server. */
#include "integration/redis/server.h"
#include "provider/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 1000, BEATS_EACH = 2, RENEWAL_COMMANDS = 6, LOOK_COMMANDS = 5 };

static struct server server;

static int begin(void **state)
{
    server_init(&server);
    server_start(&server);
    for (int i = 0; i < MANY; i++) {
        char election[32];

        snprintf(election, sizeof(election), "election-%d", i);
        server_trust(&server, election);
    }
    return 0;
}

static int end(void **state)
{
    server_fini(&server);
    return 0;
}

struct counts {
    long long commands; /* all of them */
    long long beats;    /* each has one ZADD, and nothing else has */
    long long asked;    /* COMMAND INFO */
};

/* The calls of one command; 0: there were none. */
static long long calls_of(const char *stats, const char *command)
{
    char name[64];
    const char *at;

    snprintf(name, sizeof(name), "cmdstat_%s:calls=", command);
    at = strstr(stats, name);
    return at ? strtoll(at + strlen(name), NULL, 10) : 0;
}

/* Since the server's start, without what this test asks. Commands of a script count, too. Renewals
 * and looks at a lock are no part of a beat: each renewal has one PEXPIRE, each look one PTTL. */
static struct counts take_counts(void)
{
    redisReply *reply = server_ask(&server, "INFO commandstats");
    struct counts counts = {0};

    for (const char *at = reply->str; (at = strstr(at, "cmdstat_")); at++) {
        const char *calls = strstr(at, ":calls=");
        counts.commands += strtoll(calls + strlen(":calls="), NULL, 10);
    }
    counts.commands -= calls_of(reply->str, "info") +
                       RENEWAL_COMMANDS * calls_of(reply->str, "pexpire") +
                       LOOK_COMMANDS * calls_of(reply->str, "pttl");
    counts.beats = calls_of(reply->str, "zadd");
    counts.asked = calls_of(reply->str, "command|info");
    freeReplyObject(reply);
    return counts;
}

static void await_beats(long long beats)
{
    SERVER_AWAIT(take_counts().beats >= beats);
}

struct process {
    struct baton *baton;
    struct baton_election *elections[MANY];
};

static struct process *take_part(void)
{
    struct process *process = calloc(1, sizeof(*process));
    char url[256];

    assert_non_null(process);
    snprintf(url, sizeof(url),
             "redis://127.0.0.1:%d?guardian=off&heartbeat-interval=1s&process-lifetime=9s"
             "&check-interval=30s",
             server.port);
    ASSERT_OK(baton_open(&process->baton, url, NULL, failure));
    for (int i = 0; i < MANY; i++) {
        char name[32];
        snprintf(name, sizeof(name), "election-%d", i);
        ASSERT_OK(baton_campaign(&process->elections[i], process->baton, name, NULL, failure));
    }
    for (int i = 0; i < MANY; i++) {
        ASSERT_OK(baton_wait(process->elections[i], BATON_TIMEOUT_DEFAULT, failure));
    }
    return process;
}

static void leave(struct process *process)
{
    baton_close(process->baton);
    free(process);
}

/* A hundredth of a command, for each beat. */
static void check_cost(int processes, long long most)
{
    long long all = (long long)MANY * processes;
    struct counts from, to;
    long long cost;

    await_beats(take_counts().beats + 2 * all); /* what the coming of all brings about is over */
    from = take_counts();
    await_beats(from.beats + BEATS_EACH * all);
    to = take_counts();
    cost = 100 * (to.commands - from.commands) / (to.beats - from.beats);
    print_message("%d process%s: %lld.%02lld commands for a beat, %lld for one of each of %d\n",
                  processes, processes > 1 ? "es" : "", cost / 100, cost % 100, cost * all / 100,
                  MANY);
    assert_true(cost <= most);
    assert_int_equal(to.asked, from.asked);
}

static void the_beats_of_many_elections_are_few_commands(void **state)
{
    struct process *leads;
    struct process *follows;

    leads = take_part();
    check_cost(1, 450);
    follows = take_part();
    check_cost(2, 600);
    leave(follows);
    leave(leads);
}

/* When the entry of the only process in an election ends, by the server's clock. */
static double end_of(int number)
{
    redisReply *reply =
        server_ask(&server, "ZRANGE election-%d:processes:expiry 0 -1 WITHSCORES", number);
    double end_ms;

    assert_int_equal(reply->elements, 2);
    end_ms = strtod(reply->element[1]->str, NULL);
    freeReplyObject(reply);
    return end_ms;
}

enum { SPOILT_EACH = 10 };

/* Many are written in one script; in every tenth of them somebody has put another type there. */
static void elections_that_fail_keep_no_other_from_its_beat(void **state)
{
    struct process *process = take_part();
    static double ends[MANY];

    for (int i = 0; i < MANY; i += SPOILT_EACH) {
        server_tell(&server, "DEL election-%d:processes", i);
        server_tell(&server, "SET election-%d:processes mine", i);
    }
    for (int i = 0; i < MANY; i++) {
        ends[i] = end_of(i);
    }
    for (int i = 0; i < MANY; i++) {
        SERVER_AWAIT(i % SPOILT_EACH == 0 || end_of(i) > ends[i]);
    }
    server_tell(&server, "DEL election-0:processes");
    SERVER_AWAIT(server_says(&server, "HVALS election-0:processes", "lastSeen"));
    leave(process);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_beats_of_many_elections_are_few_commands, begin, end),
        cmocka_unit_test_setup_teardown(elections_that_fail_keep_no_other_from_its_beat, begin,
                                        end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

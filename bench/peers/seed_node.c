/* One process of an election as the text of MasterElection has it, for `baton bench --provider
 * seed`: SET NX PX 30 s, renewed every 10 s; everybody else looks every 5 s.
 *
 *   baton-bench-seed SLOT NODES ACT-FILE DATA MODE HOST:PORT
 *
 * Written plainly, as somebody would who knows the text alone. SIGUSR1 gives leadership up. MODE
 * tuned: all times are a thirtieth, in the same proportions.
 *
 * Such a lock has no epochs. The stamps need one, by which the harness knows whose is the latest,
 * and a process that is killed leaves its own behind: so it is the moment of the acquisition.
 */
#include "cli/act.h"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LOCK_MS = 30000, HEARTBEAT_MS = 10000, CHECK_MS = 5000, HELD_BACK_MS = 10000, TUNED = 30 };

static volatile sig_atomic_t shall_resign;

static void on_signal(int number)
{
    (void)number;
    shall_resign = 1;
}

/* Sleeps; a signal ends it. */
static void rest(int ms)
{
    struct timespec wait = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    (void)nanosleep(&wait, NULL);
}

static bool is_ok(redisReply *reply)
{
    bool ok = reply && ((reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, "OK") == 0) ||
                        (reply->type == REDIS_REPLY_INTEGER && reply->integer == 1));
    freeReplyObject(reply);
    return ok;
}

static redisContext *connect_to(const char *address)
{
    char host[64];
    const char *colon = strchr(address, ':');
    redisContext *context;

    (void)snprintf(host, sizeof(host), "%.*s", (int)(colon - address), address);
    for (;;) {
        context = redisConnect(host, (int)strtol(colon + 1, NULL, 10));
        if (context && context->err == 0) {
            return context;
        }
        redisFree(context);
        rest(100);
    }
}

static const char renew[] = "if redis.call('GET', KEYS[1]) == ARGV[1] then "
                            "return redis.call('PEXPIRE', KEYS[1], ARGV[2]) else return 0 end";
static const char release[] = "if redis.call('GET', KEYS[1]) == ARGV[1] then "
                              "return redis.call('DEL', KEYS[1]) else return 0 end";

int main(int argc, char **argv)
{
    struct act *act;
    bool leads = false;
    int faster = 1;

    if (argc != 7 || !strchr(argv[6], ':')) {
        (void)fprintf(stderr, "usage: %s SLOT NODES ACT-FILE DATA MODE HOST:PORT\n", argv[0]);
        return 64;
    }
    if (act_open(&act, argv[3], NULL) != 0) {
        return 1;
    }
    (void)sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_signal}, NULL);
    unsigned slot = (unsigned)strtoul(argv[1], NULL, 10);
    int id = getpid();
    faster = strcmp(argv[5], "tuned") == 0 ? TUNED : 1;
    redisContext *redis = connect_to(argv[6]);
    for (;;) {
        bool has;
        if (redis->err != 0) {
            redisFree(redis);
            redis = connect_to(argv[6]);
        }
        if (leads && shall_resign) {
            act_stamp_lost(act, slot, clock_now());
            (void)is_ok(redisCommand(redis, "EVAL %s 1 seed:master %d", release, id));
            leads = false;
            rest(HELD_BACK_MS / faster);
        }
        shall_resign = 0;
        has = leads
                  ? is_ok(redisCommand(redis, "EVAL %s 1 seed:master %d %d", renew, id,
                                       LOCK_MS / faster))
                  : is_ok(redisCommand(redis, "SET seed:master %d NX PX %d", id, LOCK_MS / faster));
        if (has && !leads) {
            instant now = clock_now();
            act_stamp_acquired(act, slot, (uint64_t)now.ns, now);
        } else if (!has && leads) {
            act_stamp_lost(act, slot, clock_now());
        }
        leads = has;
        rest((leads ? HEARTBEAT_MS : CHECK_MS) / faster);
    }
}

/* What the simulator takes for Redis answers as Redis does: random calls of the provider's scripts
 * on a real server and on the model, whose answers and keys must be the same after each. */
#include "cmocka_all.h"
#include "integration/redis/server.h"
#include "provider/redis/scripts.h"
#include "sim/lease/play.h"
#include "sim/lease/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS = 60,
    CALLS = 60,
    IDS = 3,
    OTHER_HISTORY = 77,
    TTL_MS = 600000, /* nothing ends by itself meanwhile */
};

struct pair {
    struct server real;
    struct redis_script scripts[SCRIPT_COUNT];
    struct contest *model;
    char history[64]; /* the real server's, which is the model's 1 */
    struct random random;
    unsigned outcomes[5]; /* how often each was seen */
};

static struct pair pair;

static int begin(void **state)
{
    redisReply *info;

    scripts_fill(pair.scripts);
    server_init(&pair.real);
    server_start(&pair.real);
    info = server_ask(&pair.real, "INFO replication");
    snprintf(pair.history, sizeof(pair.history), "%.40s",
             strstr(info->str, "master_replid:") + strlen("master_replid:"));
    freeReplyObject(info);
    pair.model = contest_new();
    assert_non_null(pair.model);
    pair.model->server.history = 1;
    pair.random.state = 1;
    return 0;
}

static int end(void **state)
{
    server_fini(&pair.real);
    contest_free(pair.model);
    return 0;
}

static uint64_t below(uint64_t number)
{
    return random_below(&pair.random, number);
}

static const char *history_text(uint64_t history)
{
    return history == 1 ? pair.history : "another";
}

/* ---- Keys ------------------------------------------------------------------------------------ */

static uint64_t number_of(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_STRING ? strtoull(reply->str, NULL, 10) : 0;
}

static struct contest_keys real_keys(void)
{
    redisReply *master = server_ask(&pair.real, "GET e:master");
    redisReply *of = server_ask(&pair.real, "HMGET e:epoch epoch holder server since most");
    struct contest_keys keys = {.master = number_of(master),
                                .epoch = number_of(of->element[0]),
                                .holder = number_of(of->element[1]),
                                .since_ms = (int64_t)number_of(of->element[3]),
                                .most_ms = (int64_t)number_of(of->element[4])};

    if (of->element[2]->type == REDIS_REPLY_STRING) {
        keys.history = strcmp(of->element[2]->str, pair.history) == 0 ? 1 : OTHER_HISTORY;
    }
    freeReplyObject(master);
    freeReplyObject(of);
    return keys;
}

static int64_t real_time_ms(void)
{
    redisReply *time = server_ask(&pair.real, "TIME");
    int64_t ms = (int64_t)(number_of(time->element[0]) * 1000 + number_of(time->element[1]) / 1000);

    freeReplyObject(time);
    return ms;
}

/* What happens to keys between two calls: lifetimes end, copies are older, locks change hands. */
static void tamper(void)
{
    struct contest_keys *keys = &pair.model->server.keys;
    int64_t now = real_time_ms();

    switch (below(7)) {
    case 0:
        server_tell(&pair.real, "DEL e:master e:heartbeat");
        keys->master = NOBODY;
        break;
    case 1:
        keys->history = below(2) ? 1 : OTHER_HISTORY;
        server_tell(&pair.real, "HSET e:epoch server %s", history_text(keys->history));
        break;
    case 2:
        keys->since_ms = now - (below(2) ? 2 * TTL_MS : 0) + (below(5) ? 0 : 10 * TTL_MS);
        server_tell(&pair.real, "HSET e:epoch since %lld", (long long)keys->since_ms);
        break;
    case 3:
        keys->holder = 1 + below(IDS);
        keys->epoch = keys->epoch ? keys->epoch : 5;
        server_tell(&pair.real, "HSET e:epoch holder %d epoch %llu", (int)keys->holder,
                    (unsigned long long)keys->epoch);
        break;
    case 4:
        server_tell(&pair.real, "DEL e:epoch");
        *keys = (struct contest_keys){.master = keys->master, .until_ms = keys->until_ms};
        break;
    case 5:
        keys->master = 1 + below(IDS);
        keys->until_ms = now + TTL_MS;
        server_tell(&pair.real, "SET e:master %d PX %d", (int)keys->master, TTL_MS);
        break;
    default: /* a lease ago: whatever waits has waited */
        if (keys->since_ms) {
            keys->since_ms = 1;
            server_tell(&pair.real, "HSET e:epoch since 1");
        }
        break;
    }
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static redisReply *real_call(const struct contest_request *request)
{
    static const enum script_name names[] = {[LEASE_TAKE] = SCRIPT_TAKE,
                                             [LEASE_LOOK] = SCRIPT_LOOK,
                                             [LEASE_RENEW] = SCRIPT_RENEW,
                                             [LEASE_RELEASE] = SCRIPT_RELEASE};
    const char *text = pair.scripts[names[request->type]].text;
    int id = (int)request->id;
    unsigned long long epoch = request->epoch;

    /* Behind each: the heartbeat's lifetime, and where others' heartbeats are: not asked for. */
    switch (request->type) {
    case LEASE_TAKE:
        return server_ask(
            &pair.real,
            "EVAL %s 4 e:master e:heartbeat e:epoch e:wake %d %d %llu %d %s 0 %s %lld %lld 0", text,
            id, TTL_MS, epoch, TTL_MS, "", "", (long long)request->most_ms,
            (long long)request->most_ms);
    case LEASE_LOOK:
        return server_ask(&pair.real, "EVAL %s 2 e:master e:epoch %s", text, "");
    case LEASE_RENEW:
        return server_ask(
            &pair.real, "EVAL %s 3 e:master e:heartbeat e:epoch %d %d %llu %s %d %s %lld", text, id,
            TTL_MS, epoch, history_text(request->history), TTL_MS, "", (long long)request->most_ms);
    case LEASE_RELEASE:
        break;
    }
    return server_ask(&pair.real, "EVAL %s 4 e:master e:heartbeat e:epoch e:wake %d %llu gone",
                      text, id, epoch);
}

/* The model's clock shows what the script has read. */
static void set_clock(int64_t ms)
{
    pair.model->server.clock = (struct drift_clock){.local_base = ms * 1000000};
    pair.model->server.started_s = ms / 1000; /* as the real one: not long ago */
}

static enum lease_outcome outcome_of(long long answer)
{
    static const enum lease_outcome outcomes[] = {[ANSWER_HELD] = LEASE_HELD,
                                                  [ANSWER_GRANTED] = LEASE_GRANTED,
                                                  [ANSWER_NOT_YET] = LEASE_NOT_YET,
                                                  [ANSWER_FREE] = LEASE_FREE};

    assert_in_range(answer, 0, ANSWER_FREE);
    return outcomes[answer];
}

static void compare(const struct contest_request *request)
{
    struct contest_keys *modelled = &pair.model->server.keys;
    int64_t now = real_time_ms();
    redisReply *reply = real_call(request);
    redisReply *heartbeat = server_ask(&pair.real, "GET e:heartbeat");
    struct contest_keys real = real_keys();
    struct lease_input answer;

    if (reply->type == REDIS_REPLY_ERROR) {
        fail_msg("%s", reply->str);
    }
    if (request->type != LEASE_RELEASE && reply->element[0]->integer == ANSWER_GRANTED) {
        now = (int64_t)number_of(heartbeat); /* the time in the script */
    }
    set_clock(now);
    answer = server_serve(pair.model, request);
    if (request->type != LEASE_RELEASE) {
        assert_int_equal(outcome_of(reply->element[0]->integer), answer.reply.outcome);
        assert_int_equal(reply->element[1]->integer, answer.reply.epoch);
        pair.outcomes[answer.reply.outcome]++;
    }
    assert_int_equal(real.master, modelled->master);
    assert_int_equal(real.epoch, modelled->epoch);
    assert_int_equal(real.holder, modelled->holder);
    assert_int_equal(real.history, modelled->history);
    assert_int_equal(real.most_ms, modelled->most_ms);
    assert_int_equal(real.since_ms == 0, modelled->since_ms == 0);
    modelled->since_ms = real.since_ms; /* a millisecond may have passed */
    freeReplyObject(reply);
    freeReplyObject(heartbeat);
}

static struct contest_request draw(void)
{
    const struct contest_keys *keys = &pair.model->server.keys;
    struct contest_request request = {.type = (enum lease_command_type)below(4),
                                      .id = 1 + below(IDS),
                                      .history = below(3) ? 1 : OTHER_HISTORY,
                                      .ttl_ms = TTL_MS,
                                      .most_ms = below(2) ? TTL_MS : 2 * TTL_MS};

    if (keys->master && below(2)) {
        request.id = keys->master;
    }
    switch (below(4)) {
    case 0:
        request.epoch = request.type == LEASE_RENEW ? 1 : 0;
        break;
    case 1:
        request.epoch = keys->epoch ? keys->epoch - 1 : 1;
        break;
    default:
        request.epoch = keys->epoch + (request.type == LEASE_TAKE && below(2) ? 5 : 0);
        break;
    }
    if (request.type == LEASE_RENEW && request.epoch == 0) {
        request.epoch = 1; /* nobody renews what was never granted */
    }
    return request;
}

static void the_model_answers_as_the_scripts_do(void **state)
{
    for (int round = 0; round < ROUNDS; round++) {
        server_tell(&pair.real, "FLUSHALL");
        pair.model->server.keys = (struct contest_keys){0};
        for (int call = 0; call < CALLS; call++) {
            struct contest_request request = draw();
            if (below(3) == 0) {
                tamper();
            }
            compare(&request);
        }
    }
    assert_true(pair.outcomes[LEASE_GRANTED] > ROUNDS);
    assert_true(pair.outcomes[LEASE_HELD] > ROUNDS);
    assert_true(pair.outcomes[LEASE_FREE] > ROUNDS);
    assert_true(pair.outcomes[LEASE_NOT_YET] > ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_model_answers_as_the_scripts_do, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "fleet/outlets/seed_names.h"

#include "base/error.h"
#include "base/json_text.h"
#include "base/url.h"
#include "net/redis/redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STATES      "worker:states"
#define ASSIGNMENTS "worker:assignments"
#define OWNERS      "worker:owners:"

enum {
    TICK_MS = 1000,
    PAIRS_MAX = 32, /* of one command */
    ANSWER_S = 5,
};

/* A hash is written anew when any of its workers came or went; else only what is newer. */
enum part { PART_STATES = 1u << 0, PART_ASSIGNMENTS = 1u << 1 };
enum { ALL_PARTS = PART_STATES | PART_ASSIGNMENTS };

/* An HSET that is being put together. */
struct pairs {
    struct seed_names *names;
    const char *key;
    size_t count;
    char *texts[2 * PAIRS_MAX];
};

struct seed_names {
    struct seed_names_config config;
    struct fleet_observer of_state;
    struct worker_observer of_table;
    struct redis *redis;
    uv_timer_t tick;
    unsigned stale;  /* enum part */
    instant written; /* until then the workers' states are in the hash */
    bool led;
    bool fails, failed; /* writes of this tick, and of the one before */
    unsigned holds;     /* the timer, and the connection */
};

/* ---- Commands -------------------------------------------------------------------------------- */

static void on_reply(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    struct seed_names *names = userdata;
    struct baton_error error;
    (void)tag;
    (void)sent;

    if (redis_fault_of(reply) == REDIS_FINE) {
        return;
    }
    names->stale = ALL_PARTS;
    (void)redis_fault_error(reply, &error);
    if (reply != NULL && !names->fails && !names->failed && names->config.on_failed != NULL) {
        names->config.on_failed(names->config.userdata, &error);
    }
    names->fails = true;
}

static void send_words(struct seed_names *names, int count, const char **words)
{
    if (redis_command(names->redis, count, words, NULL, on_reply, names, 0) != BATON_OK) {
        names->stale = ALL_PARTS;
    }
}

#define SEND(names, ...)                                                                           \
    send_words((names), (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)),             \
               (const char *[]){__VA_ARGS__})

static void pairs_send(struct pairs *pairs)
{
    const char *words[2 + 2 * PAIRS_MAX] = {"HSET", pairs->key};

    if (pairs->count == 0) {
        return;
    }
    for (size_t i = 0; i < 2 * pairs->count; i++) {
        words[2 + i] = pairs->texts[i];
    }
    send_words(pairs->names, (int)(2 + 2 * pairs->count), words);
    for (size_t i = 0; i < 2 * pairs->count; i++) {
        free(pairs->texts[i]);
    }
    pairs->count = 0;
}

/* Takes the texts; NULL: out of memory. */
static void pairs_put(struct pairs *pairs, char *field, char *value)
{
    if (field == NULL || value == NULL) {
        pairs->names->stale = ALL_PARTS;
        free(field);
        free(value);
        return;
    }
    pairs->texts[2 * pairs->count] = field;
    pairs->texts[2 * pairs->count + 1] = value;
    if (++pairs->count == PAIRS_MAX) {
        pairs_send(pairs);
    }
}

/* ---- What is written ------------------------------------------------------------------------- */

static int64_t seconds_ago(instant at)
{
    return (int64_t)time(NULL) - instant_since(clock_now(), at).ns / 1000000000;
}

static size_t assigned_count(const struct seed_names *names, const char *worker)
{
    const struct fleet_assigned *assigned = fleet_state_assigned(names->config.state, worker);

    return assigned != NULL ? assigned->count : 0;
}

/* For free(); NULL: out of memory. */
static char *state_text(const struct seed_names *names, const struct fleet_worker *worker,
                        const struct worker_live *live)
{
    const struct worker_live none = {.process = ""};
    const struct worker_live *shown = live != NULL ? live : &none;
    json_t *json = json_pack(
        "{s:s, s:b, s:s, s:f, s:f, s:f, s:f, s:I, s:I}", "workerId", worker->id, "online",
        (int)shown->is_online, "process", shown->process, "cpuUsage", shown->usage.cpu,
        "memoryUsage", shown->usage.memory, "gpuUsage", shown->usage.gpu, "gpuMemoryUsage",
        shown->usage.gpu_memory, "subscriptionCount", (json_int_t)assigned_count(names, worker->id),
        "lastSeen", (json_int_t)(live != NULL ? seconds_ago(live->heard) : 0));
    char *text = json != NULL ? json_text(json, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;

    json_decref(json);
    return text;
}

static void write_states(struct seed_names *names, bool is_whole)
{
    struct pairs pairs = {.names = names, .key = STATES};
    const struct fleet_worker *worker = NULL;
    const instant now = clock_now();

    if (is_whole) {
        SEND(names, "MULTI");
        SEND(names, "DEL", STATES);
    }
    while ((worker = fleet_state_next_worker(names->config.state, worker)) != NULL) {
        const struct worker_live *live = worker_table_find(names->config.table, worker->id);

        if (is_whole || (live != NULL && instant_before(names->written, live->heard))) {
            pairs_put(&pairs, strdup(worker->id), state_text(names, worker, live));
        }
    }
    pairs_send(&pairs);
    if (is_whole) {
        SEND(names, "EXEC");
    }
    names->written = now;
}

static void write_assignments(struct seed_names *names)
{
    struct pairs pairs = {.names = names, .key = ASSIGNMENTS};
    const struct fleet_assigned *assigned = NULL;

    SEND(names, "MULTI");
    SEND(names, "DEL", ASSIGNMENTS);
    while ((assigned = fleet_state_next_assigned(names->config.state, assigned)) != NULL) {
        for (size_t i = 0; i < assigned->count; i++) {
            pairs_put(&pairs, strdup(assigned->subscriptions[i]), strdup(assigned->worker));
        }
    }
    pairs_send(&pairs);
    SEND(names, "EXEC");
}

static void write_owners(struct seed_names *names)
{
    const struct fleet_worker *worker = NULL;

    while ((worker = fleet_state_next_worker(names->config.state, worker)) != NULL) {
        const struct worker_live *live = worker_table_find(names->config.table, worker->id);
        char key[sizeof(OWNERS) + WORKER_ID_MAX];

        if (live != NULL && live->is_online) {
            (void)snprintf(key, sizeof(key), OWNERS "%s", worker->id);
            SEND(names, "SET", key, live->process, "EX", "30");
        }
    }
}

static void on_tick(uv_timer_t *tick)
{
    struct seed_names *names = tick->data;
    const bool leads = names->config.leads(names->config.userdata);
    const unsigned stale = names->led ? names->stale : ALL_PARTS;

    names->failed = names->fails;
    names->fails = false;
    names->led = leads && redis_is_up(names->redis);
    if (!names->led || !fleet_state_is_ready(names->config.state)) {
        return;
    }
    names->stale = 0;
    write_states(names, (stale & PART_STATES) != 0);
    if ((stale & PART_ASSIGNMENTS) != 0) {
        write_assignments(names);
    }
    write_owners(names);
}

/* ---- What has changed ------------------------------------------------------------------------ */

static void on_state(struct fleet_observer *observer, const struct fleet_state_event *event)
{
    struct seed_names *names =
        (struct seed_names *)((char *)observer - offsetof(struct seed_names, of_state));

    if (event->change == FLEET_CHANGED_ASSIGNED) {
        names->stale |= PART_ASSIGNMENTS | PART_STATES;
    } else if (event->change == FLEET_CHANGED_WORKER) {
        names->stale |= PART_STATES;
    }
}

static void on_worker(struct worker_observer *observer, const struct worker_live *worker,
                      enum worker_change change)
{
    struct seed_names *names =
        (struct seed_names *)((char *)observer - offsetof(struct seed_names, of_table));
    (void)worker;

    if (change != WORKER_CHANGED_REPORT) {
        names->stale |= PART_STATES;
    }
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void release(struct seed_names *names)
{
    if (--names->holds == 0) {
        free(names);
    }
}

static void on_tick_closed(uv_handle_t *handle)
{
    release(handle->data);
}

static void on_redis_closed(void *userdata)
{
    release(userdata);
}

static void on_up(void *userdata, const struct redis_identity *identity)
{
    struct seed_names *names = userdata;
    (void)identity;

    names->stale = ALL_PARTS; /* it may be another server */
}

static void on_down(void *userdata, const struct baton_error *error)
{
    (void)userdata;
    (void)error; /* the provider, which uses the same server, reports it */
}

static int read_address(struct redis_address *ret, const char *url, struct baton_error *reterr)
{
    const char *query = url_query(url);
    struct url_pair pair;
    int code = redis_address_parse(ret, url, reterr);

    while (code == BATON_OK && url_next(&query, &pair)) {
        char key[64], value[REDIS_FILE_MAX];

        code = url_decode(key, sizeof(key), pair.key, pair.key_bytes);
        if (code == BATON_OK) {
            code = url_decode(value, sizeof(value), pair.value, pair.value_bytes);
        }
        if (code != BATON_OK) {
            return error_set(reterr, code, "the URL of Redis: a setting that cannot be read");
        }
        code = redis_address_set(ret, key, value, reterr);
    }
    if (code == BATON_OK && (ret->sentinel_count > 0 || ret->server_count > 1)) {
        code = error_set(reterr, BATON_ENOTSUP,
                         "the names of the worker protocol are written to one Redis server: "
                         "Sentinels, and several servers, are not for them");
    }
    return code == BATON_OK ? redis_address_check(ret, reterr) : code;
}

static int connect_redis(struct seed_names *names, const struct redis_address *address,
                         struct baton_error *reterr)
{
    const struct redis_options options = {.loop =
                                              member_loop(fleet_state_member(names->config.state)),
                                          .logger = names->config.logger,
                                          .address = address,
                                          .name = "baton-fleet",
                                          .answer_timeout = SPAN_S(ANSWER_S),
                                          .wants_master = true,
                                          .callbacks = {.on_up = on_up, .on_down = on_down},
                                          .userdata = names};

    return redis_open(&names->redis, &options, reterr);
}

static void begin(struct seed_names *names)
{
    names->holds = 2;
    names->of_state.on_change = on_state;
    fleet_state_observe(names->config.state, &names->of_state);
    names->of_table.on_change = on_worker;
    worker_table_observe(names->config.table, &names->of_table);
    (void)uv_timer_init(member_loop(fleet_state_member(names->config.state)), &names->tick);
    names->tick.data = names;
    (void)uv_timer_start(&names->tick, on_tick, TICK_MS, TICK_MS);
}

int seed_names_open(struct seed_names **ret, const struct seed_names_config *config,
                    struct baton_error *reterr)
{
    struct seed_names *names = calloc(1, sizeof(*names));
    struct redis_address *address = calloc(1, sizeof(*address));
    int code;

    if (names == NULL || address == NULL) {
        free(names);
        free(address);
        return error_set(reterr, BATON_ENOMEM, "out of memory for names in Redis");
    }
    names->config = *config;
    code = read_address(address, config->url, reterr);
    if (code == BATON_OK) {
        code = connect_redis(names, address, reterr);
    }
    explicit_bzero(address, sizeof(*address)); /* a password */
    free(address);
    if (code != BATON_OK) {
        free(names);
        return code;
    }
    names->config.url = NULL; /* borrowed, and secret */
    begin(names);
    *ret = names;
    return BATON_OK;
}

void seed_names_close(struct seed_names *names)
{
    if (names == NULL) {
        return;
    }
    fleet_state_ignore(names->config.state, &names->of_state);
    worker_table_ignore(names->config.table, &names->of_table);
    uv_close((uv_handle_t *)&names->tick, on_tick_closed);
    redis_close(names->redis, on_redis_closed, names);
}

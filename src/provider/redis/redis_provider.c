/* Opening and closing, and whom news from the server are for. */
#include "provider/redis/client.h"

#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REPLICAS_MAX = 16, WAIT_TIMEOUT_MS = 500 };

uint64_t client_random(void)
{
    uint64_t number = 0;

    (void)RAND_bytes((unsigned char *)&number, sizeof(number));
    return number;
}

uint64_t client_chance(struct client *client)
{
    uint64_t mixed = client->chance += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */

    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

static struct client *client_of(struct provider *provider)
{
    return (struct client *)provider;
}

void client_enter(struct client *client)
{
    client->depth++;
}

void client_exit(struct client *client)
{
    if (--client->depth == 0) {
        readers_sweep(client);
        seats_bury(client);
    }
}

int client_run_at(struct client *client, int server, enum script_name script, int key_count,
                  int count, const char **words, redis_reply_cb on_reply, void *userdata,
                  uint64_t tag)
{
    if (client->servers[server].is_double) {
        return BATON_EUNAVAILABLE;
    }
    return redis_run(client->servers[server].commands, &client->scripts[script], key_count, count,
                     words, NULL, on_reply, userdata, tag);
}

static void on_copy_answered(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    (void)userdata;
    (void)tag;
    (void)reply; /* the first server's answer is the one that counts */
    (void)sent;
}

/* Each server has the whole registry, and any of them tells it. */
static int run_on_many(struct client *client, enum script_name script, int key_count, int count,
                       const char **words, const size_t *lengths, redis_reply_cb on_reply,
                       void *userdata, uint64_t tag)
{
    bool is_for_all = script == SCRIPT_REGISTER || script == SCRIPT_LEAVE;
    bool is_sent = false;

    for (int i = 0; i < client->server_count && (is_for_all || !is_sent); i++) {
        int r = redis_run(client->servers[i].commands, &client->scripts[script], key_count, count,
                          words, lengths, is_sent ? on_copy_answered : on_reply,
                          is_sent ? NULL : userdata, tag);
        is_sent = is_sent || r == BATON_OK;
    }
    return is_sent ? BATON_OK : BATON_EUNAVAILABLE;
}

int client_run(struct client *client, enum script_name script, int key_count, int count,
               const char **words, const size_t *lengths, redis_reply_cb on_reply, void *userdata,
               uint64_t tag)
{
    if (client->server_count > 1) {
        return run_on_many(client, script, key_count, count, words, lengths, on_reply, userdata,
                           tag);
    }
    if (client->cluster && key_count == 0) {
        return BATON_ENOTSUP; /* it would be one node's answer, and nobody knows whose */
    }
    if (client->cluster && redis_is_up(client->commands)) {
        return redis_cluster_run(client->cluster, &client->scripts[script], key_count, count, words,
                                 lengths, on_reply, userdata, tag);
    }
    return redis_run(client->commands, &client->scripts[script], key_count, count, words, lengths,
                     on_reply, userdata, tag);
}

void redis_provider_observe(struct provider *provider, redis_renewed_cb on_renewed, void *userdata)
{
    struct client *client = client_of(provider);

    client->on_renewed = on_renewed;
    client->renewed_userdata = userdata;
}

void client_flush(struct client *client, const char *key)
{
    struct redis *node = client->cluster ? redis_cluster_node_of(client->cluster, key) : NULL;

    if (node) {
        redis_flush(node);
    }
    for (int i = 0; !client->cluster && i < client->server_count; i++) {
        redis_flush(client->servers[i].commands);
    }
}

const struct redis *client_server_of(const struct client *client, const char *key)
{
    return client->cluster ? redis_cluster_node_of(client->cluster, key) : client->commands;
}

/* ---- Options --------------------------------------------------------------------------------- */

static int take_span(const struct provider_config *config, const char *key, span *ret,
                     struct baton_error *reterr)
{
    char space[32];
    const char *text = provider_option(config, key, space, sizeof(space));
    char *end;
    double number;
    double scale;

    if (!text) {
        return BATON_OK;
    }
    number = strtod(text, &end);
    scale = strcmp(end, "s") == 0 ? 1e9 : strcmp(end, "ms") == 0 || !*end ? 1e6 : 0;
    if (end == text || scale == 0 || !(number >= 0) || number * scale > 9e15) {
        return error_set(reterr, BATON_EINVAL, "%s \"%s\": is no time such as 30s or 500ms", key,
                         text);
    }
    *ret = SPAN_NS(number * scale);
    return BATON_OK;
}

static int take_wait_replicas(struct client *client, const struct provider_config *config,
                              struct baton_error *reterr)
{
    char space[32];
    const char *text = provider_option(config, "wait-replicas", space, sizeof(space));
    char *end = NULL;
    long number = text ? strtol(text, &end, 10) : 0;

    if (text && (end == text || *end || number < 0 || number > REPLICAS_MAX)) {
        return error_set(reterr, BATON_EINVAL, "wait-replicas \"%s\": must be 0 to %d", text,
                         REPLICAS_MAX);
    }
    client->waits.replicas = (int)number;
    return waits_check(client, reterr);
}

static void write_lifetimes(struct client *client)
{
    span lease = client->settings.lease;
    span beat = layout_heartbeat_lifetime(client->layout, lease);

    (void)snprintf(client->lease_ms, sizeof(client->lease_ms), "%lld",
                   (long long)(lease.ns / 1000000));
    (void)snprintf(client->beat_ms, sizeof(client->beat_ms), "%lld",
                   (long long)(beat.ns / 1000000));
}

static int take_settings(struct client *client, const struct provider_config *config,
                         struct baton_error *reterr)
{
    struct lease_settings *settings = &client->settings;
    const struct {
        const char *key;
        span *ret;
    } spans[] = {
        {"lease", &settings->lease},
        {"heartbeat-interval", &settings->renew_interval},
        {"check-interval", &settings->check_interval},
        {"answer-timeout", &settings->answer_timeout},
        {"spread", &settings->spread_max},
        {"process-lifetime", &client->process_lifetime},
        {"start-delay", &client->start_delay},
        {"wait-timeout", &client->waits.timeout},
    };
    char space[32];
    bool has_interval = provider_option(config, "heartbeat-interval", space, sizeof(space));
    char layout[32];
    int found = layout_find(&client->layout,
                            provider_option(config, "layout", layout, sizeof(layout)), reterr);

    if (found != BATON_OK) {
        return found;
    }
    lease_settings_default(settings);
    settings->check_interval = layout_check_interval(client->layout);
    client->process_lifetime = SPAN_S(45);
    client->waits.timeout = SPAN_MS(WAIT_TIMEOUT_MS);
    client->wants_guardian = true;
    if (!provider_option_flag(config, "guardian", &client->wants_guardian, reterr) ||
        !provider_option_flag(config, "kill-outliving", &client->kills_outliving, reterr)) {
        return BATON_EINVAL;
    }
    for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
        int r = take_span(config, spans[i].key, spans[i].ret, reterr);
        if (r != BATON_OK) {
            return r;
        }
    }
    if (!has_interval) {
        settings->renew_interval = SPAN_NS(settings->lease.ns / 3);
    }
    if (client->process_lifetime.ns < 2 * settings->renew_interval.ns) {
        return error_set(reterr, BATON_EINVAL,
                         "process-lifetime >= 2 x heartbeat-interval fails: %g s < 2 x %g s",
                         (double)client->process_lifetime.ns / 1e9,
                         (double)settings->renew_interval.ns / 1e9);
    }
    write_lifetimes(client);
    found = take_wait_replicas(client, config, reterr);
    return found == BATON_OK ? lease_settings_check(settings, reterr) : found;
}

static void make_id(char *ret, size_t ret_bytes)
{
    unsigned char b[16] = {0};

    (void)RAND_bytes(b, sizeof(b));
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40); /* a UUID of version 4 */
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    (void)snprintf(ret, ret_bytes,
                   "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                   b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
                   b[14], b[15]);
}

static int take_names(struct client *client, const struct provider_config *config,
                      struct baton_error *reterr)
{
    char space[BATON_NAME_MAX];
    char host[BATON_NAME_MAX] = "node";
    const char *node =
        config->node ? config->node : provider_option(config, "node", space, sizeof(space));
    char prefix[96];
    const char *given = provider_option(config, "state-prefix", prefix, sizeof(prefix));

    (void)gethostname(host, sizeof(host) - 1);
    node = node ? node : host;
    if (!node[0] || strlen(node) >= sizeof(client->node)) {
        return error_set(reterr, BATON_EINVAL, "node \"%.40s\": must have 1 to %d bytes", node,
                         BATON_NAME_MAX - 1);
    }
    (void)snprintf(client->node, sizeof(client->node), "%s", node);
    (void)snprintf(client->prefix, sizeof(client->prefix), "%s:", given ? given : "baton:state");
    client->has_own_prefix = given != NULL;
    make_id(client->id, sizeof(client->id));
    return BATON_OK;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static void on_upkeep(uv_timer_t *timer)
{
    redis_state_look_again(timer->data);
}

static int redis_provider_open(struct provider **ret, const struct provider_config *config,
                               struct baton_error *reterr)
{
    struct client *client = calloc(1, sizeof(*client));
    int r;

    if (!client) {
        return error_set(reterr, BATON_ENOMEM, "Redis: out of memory");
    }
    client->base.ops = &redis_provider_ops;
    client->loop = config->loop;
    client->logger = config->logger;
    client->chance = client_random();
    scripts_fill(client->scripts);
    r = redis_address_parse(&client->address, config->url, reterr);
    for (size_t i = 0; r == BATON_OK && i < config->option_count; i++) {
        const struct provider_option *option = &config->options[i];
        r = redis_address_set(&client->address, option->key, option->value ? option->value : "",
                              reterr);
    }
    if (r == BATON_OK) {
        r = redis_address_check(&client->address, reterr);
    }
    if (r == BATON_OK) {
        r = take_names(client, config, reterr);
    }
    if (r == BATON_OK) {
        r = take_settings(client, config, reterr);
    }
    if (r == BATON_OK && !(client->self = text_get(client, client->id, strlen(client->id)))) {
        r = error_set(reterr, BATON_ENOMEM, "Redis: out of memory");
    }
    if (r != BATON_OK) {
        free(client);
        return r;
    }
    (void)uv_timer_init(client->loop, &client->upkeep);
    client->upkeep.data = client;
    client->open_handles = 1;
    agenda_init(client);
    redis_ward_begin(client);
    r = client_connect(client, reterr);
    if (r != BATON_OK) {
        client->base.ops->close(&client->base, NULL, NULL);
        return r;
    }
    (void)uv_timer_start(&client->upkeep, on_upkeep, 1000, 1000);
    *ret = &client->base;
    return BATON_OK;
}

/* ---- Closing --------------------------------------------------------------------------------- */

void client_release(struct client *client)
{
    void (*closed)(void *) = client->closed;
    void *userdata = client->closed_userdata;

    if (--client->open_handles == 0) {
        while (client->readers) {
            client->readers->is_gone = true;
            client->depth = 0;
            readers_sweep(client);
        }
        registry_forget_drafts(client);
        text_drop(client, client->self);
        free(client);
        if (closed) {
            closed(userdata);
        }
    }
}

static void on_part_closed(void *userdata)
{
    client_release(userdata);
}

static void on_upkeep_closed(uv_handle_t *handle)
{
    client_release(handle->data);
}

static void close_connection(struct client *client, struct redis *redis)
{
    if (redis) {
        client->open_handles++;
        redis_close(redis, on_part_closed, client);
    }
}

static void redis_provider_close(struct provider *provider, void (*closed)(void *userdata),
                                 void *userdata)
{
    struct client *client = client_of(provider);

    if (client->is_closing) {
        return;
    }
    client->is_closing = true;
    client->closed = closed;
    client->closed_userdata = userdata;
    client_enter(client);
    client->open_handles++;
    while (client->seats) {
        seat_end(client->seats);
    }
    client_exit(client);
    redis_ward_end(client);
    if (client->cluster) {
        client->open_handles++;
        redis_cluster_close(client->cluster, on_part_closed, client);
        client->cluster = NULL;
    }
    if (client->sentinel) {
        client->open_handles++;
        sentinel_close(client->sentinel, on_part_closed, client);
        client->sentinel = NULL;
    }
    for (int i = 0; i < client->server_count; i++) {
        close_connection(client, client->servers[i].commands);
        close_connection(client, client->servers[i].told);
    }
    agenda_fini(client);
    uv_close((uv_handle_t *)&client->upkeep, on_upkeep_closed);
    client_release(client);
}

const struct provider_ops redis_provider_ops = {
    .scheme = "redis",
    .others = "rediss unix redis+unix redis+sentinel",
    .summary = "leases, registry, channels and state in Redis or Valkey",
    .features = PROVIDER_MEMBERS | PROVIDER_CHANNELS | PROVIDER_STATE | PROVIDER_MANY_ELECTIONS,
    .open = redis_provider_open,
    .close = redis_provider_close,
    .campaign = seat_campaign,
    .check_heir = seat_check_heir,
    .resign = seat_resign,
    .set_eligible = seat_set_eligible,
    .set_metadata = seat_set_metadata,
    .leave = seat_leave,
    .leader = seat_leader,
    .status = redis_provider_status,
    .members = registry_members,
    .publish = channel_publish,
    .subscribe = channel_subscribe,
    .unsubscribe = channel_unsubscribe,
    .get = redis_state_get,
    .list = redis_state_list,
    .put = redis_state_put,
    .watch = redis_state_watch,
    .unwatch = redis_state_unwatch,
    .set_victims = redis_ward_set_victims,
};

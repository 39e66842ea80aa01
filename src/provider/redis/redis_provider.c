/* Opening and closing, and the dispatch of the server's notices. */
#include "provider/redis/redis_provider.h"

#include "guardian/guardian.h"
#include "provider/redis/client.h"

#include "provider/setting_rows.h"

#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOT_GIVEN SPAN_NS(-1)

enum { REPLICAS_MAX = 16, WAIT_TIMEOUT_MS = 500, STATE_PREFIX_MAX = 95 };

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
        subscribers_sweep(client);
        registrations_free_unused(client);
    }
}

int client_run_at(struct client *client, int server, enum script_name script, int key_count,
                  int count, const char **arguments, redis_reply_cb on_reply, void *userdata,
                  uint64_t tag)
{
    if (client->servers[server].is_double) {
        return BATON_EUNAVAILABLE;
    }
    return redis_run(client->servers[server].commands, &client->scripts[script], key_count, count,
                     arguments, NULL, on_reply, userdata, tag);
}

static void on_copy_answered(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    (void)userdata;
    (void)tag;
    (void)reply; /* only the first server's reply counts */
    (void)sent;
}

/* Each server has the whole registry, so any one can be read. */
static int run_on_many(struct client *client, enum script_name script, int key_count, int count,
                       const char **arguments, const size_t *lengths, redis_reply_cb on_reply,
                       void *userdata, uint64_t tag)
{
    bool is_for_all =
        script == SCRIPT_REGISTER || script == SCRIPT_LEAVE || script == SCRIPT_FORGET;
    bool is_sent = false;

    for (int i = 0; i < client->server_count && (is_for_all || !is_sent); i++) {
        int r = redis_run(client->servers[i].commands, &client->scripts[script], key_count, count,
                          arguments, lengths, is_sent ? on_copy_answered : on_reply,
                          is_sent ? NULL : userdata, tag);
        is_sent = is_sent || r == BATON_OK;
    }
    return is_sent ? BATON_OK : BATON_EUNAVAILABLE;
}

int client_run(struct client *client, enum script_name script, int key_count, int count,
               const char **arguments, const size_t *lengths, redis_reply_cb on_reply,
               void *userdata, uint64_t tag)
{
    if (client->server_count > 1) {
        return run_on_many(client, script, key_count, count, arguments, lengths, on_reply, userdata,
                           tag);
    }
    if (client->cluster && key_count == 0) {
        return BATON_ENOTSUP; /* it would be the reply of one node, and not known of which */
    }
    if (client->cluster && redis_is_up(client->commands)) {
        return redis_cluster_run(client->cluster, &client->scripts[script], key_count, count,
                                 arguments, lengths, on_reply, userdata, tag);
    }
    return redis_run(client->commands, &client->scripts[script], key_count, count, arguments,
                     lengths, on_reply, userdata, tag);
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

static int take_layout(void *target, const char *key, const char *value, struct baton_error *reterr)
{
    struct client *client = target;
    int r = layout_find(&client->layout, value, reterr);

    (void)key;
    if (r == BATON_OK) {
        client->settings.check_interval = layout_check_interval(client->layout);
    }
    return r;
}

static int take_prefix(void *target, const char *key, const char *value, struct baton_error *reterr)
{
    struct client *client = target;

    if (strlen(value) > STATE_PREFIX_MAX) {
        return error_set(reterr, BATON_EINVAL, "%s: is longer than %d bytes", key,
                         STATE_PREFIX_MAX);
    }
    (void)snprintf(client->prefix, sizeof(client->prefix), "%s:", value);
    client->has_own_prefix = true;
    return BATON_OK;
}

static int take_address(void *target, const char *key, const char *value,
                        struct baton_error *reterr)
{
    return redis_address_set(&((struct client *)target)->address, key, value, reterr);
}

#define TARGET struct client

/* Processed in this order: a layout before the settings that override it. */
static const struct provider_setting redis_settings[] = {
    TEXT("node", node),
    OWN("layout", take_layout),
    SPAN("lease", settings.lease),
    SPAN("max-lease", max_lease),
    SPAN("heartbeat-interval", settings.renew_interval),
    SPAN("check-interval", settings.check_interval),
    SPAN("answer-timeout", settings.answer_timeout),
    SPAN("spread", settings.spread_max),
    SPAN("process-lifetime", process_lifetime),
    SPAN("start-delay", start_delay),
    NUMBER("wait-replicas", waits.replicas, 0, REPLICAS_MAX),
    SPAN("wait-timeout", waits.timeout),
    OWN("state-prefix", take_prefix),
    FLAG("guardian", wants_guardian),
    FLAG("kill-outliving", kills_outliving),
    SPAN("hang", hang),
    OWN("db", take_address),
    OWN("quorum", take_address),
    OWN("ca", take_address),
    OWN("cert", take_address),
    OWN("key", take_address),
    OWN("sni", take_address),
    OWN("verify", take_address),
    OWN("sentinel-user", take_address),
    OWN("sentinel-password", take_address),
    END,
};

static void set_defaults(struct client *client)
{
    lease_settings_default(&client->settings);
    (void)layout_find(&client->layout, NULL, NULL);
    client->settings.check_interval = layout_check_interval(client->layout);
    client->settings.renew_interval = NOT_GIVEN;
    client->max_lease = client->settings.lease;
    client->process_lifetime = SPAN_S(45);
    client->waits.timeout = SPAN_MS(WAIT_TIMEOUT_MS);
    client->wants_guardian = true;
    (void)gethostname(client->node, sizeof(client->node) - 1);
    (void)snprintf(client->prefix, sizeof(client->prefix), "baton:state:");
}

static void write_lifetimes(struct client *client)
{
    span lease = client->settings.lease;
    span beat = layout_heartbeat_lifetime(client->layout, lease);

    (void)snprintf(client->lease_ms, sizeof(client->lease_ms), "%lld",
                   (long long)(lease.ns / 1000000));
    (void)snprintf(client->beat_ms, sizeof(client->beat_ms), "%lld",
                   (long long)(beat.ns / 1000000));
    (void)snprintf(client->max_lease_ms, sizeof(client->max_lease_ms), "%lld",
                   (long long)(client->max_lease.ns / 1000000));
    (void)snprintf(client->interval_ms, sizeof(client->interval_ms), "%lld",
                   (long long)(client->settings.renew_interval.ns / 1000000));
    memcpy(client->longest_ms, client->max_lease_ms, sizeof(client->longest_ms));
    client->longest = client->max_lease;
}

/* A lease beyond it could outlast the wait of a server that has lost its data. */
static int check_max_lease(const struct client *client, struct baton_error *reterr)
{
    double lease_s = (double)client->settings.lease.ns / 1e9;
    double most_s = (double)client->max_lease.ns / 1e9;

    if (client->max_lease.ns > SPAN_S(LEASE_MAX_S).ns) {
        return error_set(reterr, BATON_EINVAL, "max-lease: %g s is more than a day", most_s);
    }
    if (client->settings.lease.ns > client->max_lease.ns) {
        return error_set(reterr, BATON_EUNSAFE,
                         "lease <= max-lease fails: %g s > %g s; give every process of the "
                         "election max-lease=%gs in its URL",
                         lease_s, most_s, lease_s);
    }
    return BATON_OK;
}

static int check_settings(struct client *client, struct baton_error *reterr)
{
    struct lease_settings *settings = &client->settings;
    int r;

    if (settings->renew_interval.ns == NOT_GIVEN.ns) {
        settings->renew_interval = SPAN_NS(settings->lease.ns / 3);
    }
    if (client->process_lifetime.ns < 2 * settings->renew_interval.ns) {
        return error_set(reterr, BATON_EINVAL,
                         "process-lifetime >= 2 x heartbeat-interval fails: %g s < 2 x %g s",
                         (double)client->process_lifetime.ns / 1e9,
                         (double)settings->renew_interval.ns / 1e9);
    }
    write_lifetimes(client);
    r = waits_check(client, reterr);
    if (r == BATON_OK) {
        r = check_max_lease(client, reterr);
    }
    if (r == BATON_OK) {
        r = guardian_check_hang(client->hang, settings->lease, client->wants_guardian, reterr);
    }
    return r == BATON_OK ? lease_settings_check(settings, reterr) : r;
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

static int take_node(struct client *client, const char *node, struct baton_error *reterr)
{
    if (node && (!node[0] || strlen(node) >= sizeof(client->node))) {
        return error_set(reterr, BATON_EINVAL, "node \"%.40s\": must have 1 to %d bytes", node,
                         BATON_NAME_MAX - 1);
    }
    if (node && !text_is_utf8(node)) {
        return error_set(reterr, BATON_EINVAL, "node \"%s\": is not UTF-8", node);
    }
    if (node) {
        memcpy(client->node, node, strlen(node) + 1);
    } else if (!client->node[0]) {
        (void)snprintf(client->node, sizeof(client->node), "node");
    }
    make_id(client->id, sizeof(client->id));
    return BATON_OK;
}

static int take_config(struct client *client, const struct provider_config *config,
                       struct baton_error *reterr)
{
    int r = redis_address_parse(&client->address, config->url, reterr);

    if (r == BATON_OK) {
        set_defaults(client);
        r = provider_settings_take(client, redis_settings, config, reterr);
    }
    if (r == BATON_OK) {
        r = redis_address_check(&client->address, reterr);
    }
    if (r == BATON_OK) {
        r = take_node(client, config->node, reterr);
    }
    return r == BATON_OK ? check_settings(client, reterr) : r;
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
    client->alive_ns = config->alive_ns;
    client->on_failed = config->on_failed;
    client->failed_userdata = config->userdata;
    client->chance = client_random();
    scripts_fill(client->scripts);
    r = take_config(client, config, reterr);
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
    redis_guardian_begin(client);
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
        while (client->subscribers) {
            client->subscribers->is_gone = true;
            client->depth = 0;
            subscribers_sweep(client);
        }
        enrol_forget_drafts(client);
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
    while (client->registrations) {
        registration_end(client->registrations);
    }
    client_exit(client);
    redis_guardian_end(client);
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
        close_connection(client, client->servers[i].notices);
    }
    agenda_fini(client);
    uv_close((uv_handle_t *)&client->upkeep, on_upkeep_closed);
    client_release(client);
}

static span redis_provider_lease(const struct provider *provider)
{
    return ((const struct client *)provider)->settings.lease;
}

const struct provider_ops redis_provider_ops = {
    .scheme = "redis",
    .others = "rediss unix redis+unix redis+sentinel",
    .summary = "leases, registry, channels and state in Redis or Valkey",
    .features = PROVIDER_MEMBERS | PROVIDER_CHANNELS | PROVIDER_STATE | PROVIDER_MANY_ELECTIONS,
    .settings = redis_settings,
    .open = redis_provider_open,
    .close = redis_provider_close,
    .lease = redis_provider_lease,
    .campaign = registration_campaign,
    .check_heir = registration_check_heir,
    .resign = registration_resign,
    .set_eligible = registration_set_eligible,
    .set_metadata = registration_set_metadata,
    .leave = registration_leave,
    .leader = registration_leader,
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
    .set_victims = redis_guardian_set_victims,
    .reload = redis_provider_reload,
};

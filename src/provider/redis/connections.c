/* The connections to the servers, their notices and their troubles. */
#include "provider/redis/client.h"

#include <stdio.h>
#include <string.h>

/* A connection that lasted less than BRIEF_MS has not ended the fault before it.
 */
enum { TROUBLE_AGAIN_S = 10, BRIEF_MS = 500 };

/* ---- The connections ------------------------------------------------------------------------- */

static void cluster_begins(struct client *client);

static int needed(const struct client *client)
{
    return client->server_count / 2 + 1;
}

static int count_up(const struct client *client)
{
    int count = 0;

    for (int i = 0; i < client->server_count; i++) {
        const struct server *server = &client->servers[i];
        count += server->commands && !server->is_double && redis_is_up(server->commands);
    }
    return count;
}

bool client_is_up(const struct client *client)
{
    return count_up(client) >= needed(client);
}

/* With this server just enough servers are up, or one more; the latter must be sent the registry.
 */
static void report_up(struct client *client, bool is_decisive)
{
    for (struct registration *registration = client->registrations; registration;
         registration = registration->hh.next) {
        if (is_decisive) {
            registration_connection(registration, true);
        } else {
            enrol_write(registration, REGISTER);
        }
    }
}

static void report_trouble(struct server *server, const struct baton_error *error);

/* Two votes of one server would make a majority of one. */
static bool is_double(struct server *server, const struct redis_identity *identity)
{
    struct client *client = server->client;
    struct baton_error error;
    struct redis_host host;
    struct redis_host twin;

    server->is_double = false;
    for (int i = 0; i < client->server_count && !server->is_double; i++) {
        const struct server *other = &client->servers[i];
        if (other != server && !other->is_double && redis_is_up(other->commands) &&
            strcmp(redis_identity_of(other->commands)->run_id, identity->run_id) == 0) {
            server->is_double = true;
            redis_where(server->commands, &host);
            redis_where(other->commands, &twin);
            (void)error_set(&error, BATON_EINVAL,
                            "Redis at %.120s:%d is the same server as %.120s:%d, and does not "
                            "count twice",
                            host.host, host.port, twin.host, twin.port);
            report_trouble(server, &error);
        }
    }
    return server->is_double;
}

/* A program that takes part in no election hears of no trouble: its log does. A client of an agent
 * is told by the agent's. */
static void log_trouble(struct server *server, const struct baton_error *error)
{
    const struct client *client = server->client;
    instant now = clock_now();

    if (client->registrations == NULL && client->on_failed != NULL &&
        (server->away_logged.ns == 0 ||
         instant_since(now, server->away_logged).ns > SPAN_S(TROUBLE_AGAIN_S).ns)) {
        server->away_logged = now;
        server->is_away_logged = true;
        log_warning(client->logger, "redis-away", LOG_STR("reason", error->message));
    }
}

static void on_up(void *userdata, const struct redis_identity *identity)
{
    struct server *server = userdata;
    struct client *client = server->client;

    if (client->server_count > 1) {
        client_enter(client);
        bool is_useless = is_double(server, identity);
        client_exit(client);
        if (is_useless) {
            return;
        }
    }

    if (client->sentinel) {
        sentinel_set_urgent(client->sentinel, false);
    }
    if (server->is_away_logged) {
        server->is_away_logged = false;
        log_notice(client->logger, "redis-back", LOG_STR("was", server->trouble));
    }
    server->trouble[0] = '\0';
    server->up_since = clock_now();
    client->was_up = true;
    client->refusal[0] = '\0';
    client->lifetimes[0] = '\0';
    client_enter(client);
    if (identity->is_cluster && client->server_count == 1) {
        cluster_begins(client);
    }
    redis_guardian_connected(client);
    report_up(client, count_up(client) == needed(client));
    redis_state_look_again(client);
    client_exit(client);
}

/* Each try fails again; the same trouble is reported once, and again after a while, for listeners
 * that came later. */
static bool is_new_trouble(char reported[BATON_ERROR_MESSAGE_MAX], const struct baton_error *error)
{
    bool is_new = strcmp(reported, error->message) != 0;

    (void)snprintf(reported, BATON_ERROR_MESSAGE_MAX, "%s", error->message);
    return is_new;
}

int client_refused(struct client *client, const redisReply *reply)
{
    struct baton_error error;
    int code = redis_fault_error(reply, &error);

    if (reply) {
        client_warn(client, &error);
    }
    return code;
}

void client_warn(struct client *client, const struct baton_error *error)
{
    if (is_new_trouble(client->refusal, error)) {
        log_warning(client->logger, "redis-refused", LOG_STR("reason", error->message));
    }
}

/* Moves to another node of the cluster: any node serves requests without a slot. */
static void look_elsewhere(struct client *client, struct redis *redis)
{
    struct redis_host now;
    struct redis_host next;

    redis_where(redis, &now);
    if (client->cluster && redis_cluster_next_host(client->cluster, &now, &next)) {
        redis_move(redis, next.host, next.port, false);
    }
}

static void report_trouble(struct server *server, const struct baton_error *error)
{
    struct client *client = server->client;
    instant now = clock_now();
    bool is_over =
        server->up_since.ns > 0 && instant_since(now, server->up_since).ns > SPAN_MS(BRIEF_MS).ns;
    bool is_new = is_new_trouble(server->reported, error) || is_over ||
                  instant_since(now, server->trouble_logged).ns > SPAN_S(TROUBLE_AGAIN_S).ns;

    (void)snprintf(server->trouble, sizeof(server->trouble), "%s", error->message);
    server->up_since = (instant){0};

    if (is_new) {
        server->trouble_logged = now;
    }
    log_trouble(server, error);
    for (struct registration *registration = client->registrations; registration;
         registration = registration->hh.next) {
        if (is_new || !registration->knows_trouble) {
            registration->knows_trouble = true;
            registration_error(registration, error);
        }
    }
    if (error->code == BATON_EAUTH && !client->was_up && client->server_count == 1 &&
        client->on_failed) {
        client->on_failed(client->failed_userdata, error);
    }
}

static void on_down(void *userdata, const struct baton_error *error)
{
    struct server *server = userdata;
    struct client *client = server->client;
    bool is_up = client_is_up(client); /* even without this server */

    client_enter(client);
    for (struct registration *registration = client->registrations; registration && !is_up;
         registration = registration->hh.next) {
        registration_connection(registration, false);
    }
    if (error->code != BATON_ECANCELED) { /* not a fault: the server moved */
        report_trouble(server, error);
    }
    if (client->sentinel) {
        sentinel_set_urgent(client->sentinel, true);
    }
    look_elsewhere(client, client->commands);
    client_exit(client);
}

/* ---- Sentinels ------------------------------------------------------------------------------- */

static void on_master(void *userdata, const char *host, int port)
{
    struct client *client = userdata;

    redis_move(client->commands, host, port, true);
    redis_move(client->notices, host, port, true);
}

/* Does not matter while the master answers. */
static void on_sentinels_down(void *userdata, const struct baton_error *error)
{
    struct client *client = userdata;

    client_enter(client);
    if (!redis_is_up(client->commands)) {
        report_trouble(&client->servers[0], error);
    }
    client_exit(client);
}

static int open_sentinels(struct client *client, struct baton_error *reterr)
{
    struct sentinel_options options = {
        .loop = client->loop,
        .logger = client->logger,
        .address = &client->address,
        .name = "baton",
        .answer_timeout = client->settings.answer_timeout,
        .on_master = on_master,
        .on_down = on_sentinels_down,
        .userdata = client,
    };
    int r = client->address.sentinel_count > 0 ? sentinel_open(&client->sentinel, &options, reterr)
                                               : BATON_OK;

    if (client->sentinel) {
        sentinel_set_urgent(client->sentinel, true);
    }
    return r;
}

/* Notices may have been missed while it was down. */
static void on_notices_up(void *userdata, const struct redis_identity *identity)
{
    struct server *server = userdata;
    struct client *client = server->client;
    (void)identity;

    client_enter(client);
    for (struct registration *registration = client->registrations; registration;
         registration = registration->hh.next) {
        registry_read(registration);
    }
    redis_state_look_again(client);
    client_exit(client);
}

/* As a rule the connection for commands reports the trouble, and a fault of this one only delays
 * things. But a refusal of this connection alone must be reported here. */
static void on_notices_down(void *userdata, const struct baton_error *error)
{
    struct server *server = userdata;
    struct client *client = server->client;

    client_enter(client);
    if (error->code == BATON_EAUTH && redis_is_up(server->commands) &&
        is_new_trouble(server->notices_trouble, error)) {
        for (struct registration *registration = client->registrations; registration;
             registration = registration->hh.next) {
            registration_error(registration, error);
        }
    }
    look_elsewhere(client, server->notices);
    client_exit(client);
}

static void on_message(void *userdata, const char *channel, const void *data, size_t bytes)
{
    struct server *server = userdata;
    struct client *client = server->client;
    size_t prefix = strlen(client->prefix);
    size_t name = strlen(channel) > strlen(WAKE) ? strlen(channel) - strlen(WAKE) : 0;
    struct registration *registration =
        strcmp(channel + name, WAKE) == 0 ? registration_find(client, channel, name) : NULL;

    client_enter(client);
    if (registration) {
        registration_notice(registration, data, bytes);
    }
    if (strncmp(channel, client->prefix, prefix) == 0 && strcmp(channel + prefix, "changes") == 0) {
        redis_state_deliver(client, data, bytes);
    }
    channel_deliver(client, channel, data, bytes);
    client_exit(client);
}

/* ---- Both connections ------------------------------------------------------------------------ */

enum { LOOK_MIN_MS = 100 }; /* no failover is faster */

static struct redis_options connection_options(struct client *client)
{
    int64_t renew_ns = client->settings.renew_interval.ns;
    span least = SPAN_MS(LOOK_MIN_MS);

    return (struct redis_options){
        .loop = client->loop,
        .logger = client->logger,
        .address = &client->address,
        .name = "baton",
        .answer_timeout = client->settings.answer_timeout,
        .look_interval = renew_ns > least.ns ? SPAN_NS(renew_ns) : least,
        .wants_master = client->address.sentinel_count > 0,
        .scripts = client->scripts,
        .script_count = SCRIPT_COUNT,
        .callbacks = {.on_up = on_up, .on_down = on_down},
        .userdata = client,
    };
}

int client_subscribe(struct client *client, const char *channel)
{
    int r = BATON_OK;

    for (int i = 0; r == BATON_OK && i < client->server_count; i++) {
        r = redis_subscribe(client->servers[i].notices, channel);
    }
    return r;
}

void client_unsubscribe(struct client *client, const char *channel)
{
    for (int i = 0; i < client->server_count; i++) {
        redis_unsubscribe(client->servers[i].notices, channel);
    }
}

int client_publish(struct client *client, const char *channel, const void *data, size_t bytes,
                   redis_reply_cb on_reply, void *userdata)
{
    const char *arguments[] = {"PUBLISH", channel, data ? data : ""};
    size_t lengths[] = {7, strlen(channel), bytes};
    int r = BATON_EUNAVAILABLE;

    for (int i = 0; r != BATON_OK && i < client->server_count; i++) {
        r = redis_command(client->servers[i].commands, 3, arguments, lengths, on_reply, userdata,
                          0);
    }
    return r;
}

static int subscribe_to_changes(struct client *client)
{
    char channel[160];

    (void)snprintf(channel, sizeof(channel), "%schanges", client->prefix);
    return client_subscribe(client, channel);
}

static int connect_server(struct server *server, struct baton_error *reterr)
{
    struct client *client = server->client;
    struct redis_options options = connection_options(client);
    struct redis_address address = client->address;
    int r;

    if (address.server_count > 0) {
        memcpy(address.host, address.servers[server->number].host, sizeof(address.host));
        address.port = address.servers[server->number].port;
    }
    options.address = &address;
    options.userdata = server;
    r = redis_open(&server->commands, &options, reterr);
    options.script_count = 0;
    options.callbacks = (struct redis_callbacks){
        .on_up = on_notices_up, .on_down = on_notices_down, .on_message = on_message};
    if (r == BATON_OK) {
        r = redis_open(&server->notices, &options, reterr);
    }
    explicit_bzero(&address, sizeof(address));
    return r;
}

int client_connect(struct client *client, struct baton_error *reterr)
{
    int r = BATON_OK;

    client->server_count = client->address.server_count > 0 ? client->address.server_count : 1;
    for (int i = 0; r == BATON_OK && i < client->server_count; i++) {
        client->servers[i] = (struct server){.client = client, .number = i};
        r = connect_server(&client->servers[i], reterr);
    }
    client->commands = client->servers[0].commands;
    client->notices = client->servers[0].notices;
    if (r == BATON_OK) {
        r = subscribe_to_changes(client);
    }
    return r == BATON_OK ? open_sentinels(client, reterr) : r;
}

/* ---- Redis Cluster --------------------------------------------------------------------------- */

/* The guardian sends its commands to this server, too. */
static void on_node_up(void *userdata)
{
    struct client *client = userdata;

    client->servers[0].trouble[0] = '\0';
    client_enter(client);
    redis_guardian_connected(client);
    client_exit(client);
}

static void on_node_down(void *userdata, const struct baton_error *error)
{
    struct client *client = userdata;

    client_enter(client);
    report_trouble(&client->servers[0], error);
    client_exit(client);
}

/* Home is up and is a node of a cluster. */
static void cluster_begins(struct client *client)
{
    struct redis_cluster_options options = {
        .home = client->commands,
        .redis = connection_options(client),
        .on_node_up = on_node_up,
        .on_node_down = on_node_down,
        .userdata = client,
    };

    if (!client->cluster) {
        if (redis_cluster_open(&client->cluster, &options) != BATON_OK) {
            client->cluster = NULL; /* elsewhere: MOVED, which is reported */
            return;
        }
        if (!client->has_own_prefix) { /* its keys must lie in one slot */
            (void)snprintf(client->prefix, sizeof(client->prefix), "{baton:state}:");
            (void)subscribe_to_changes(client);
        }
    }
    redis_cluster_learn(client->cluster);
}

/* A connection: it is accepted, its messages are handed on, replies and events are written. */
#include "agent/agent_int.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Writing --------------------------------------------------------------------------------- */

void client_send(struct client *client, json_t *message)
{
    if (client && message) {
        (void)local_send(client->local, message);
    } else if (client) {
        local_close(client->local);
    }
    json_decref(message);
}

void client_reply(struct client *client, int64_t id, json_t *more)
{
    json_t *reply = json_pack("{s:I, s:b}", "id", (json_int_t)id, "ok", 1);

    if (reply && more && json_object_update(reply, more) != 0) {
        json_decref(reply);
        reply = NULL;
    }
    json_decref(more);
    client_send(client, reply);
}

void client_fail(struct client *client, int64_t id, int code, const char *text)
{
    client_send(client, json_pack("{s:I, s:b, s:s, s:s}", "id", (json_int_t)id, "ok", 0, "code",
                                  local_code_name(code), "error", text));
}

/* ---- Replies that come later ----------------------------------------------------------------- */

struct pending *client_pend(struct client *client, int64_t id)
{
    struct pending *pending = client->pending < AGENT_PENDING_MAX ? malloc(sizeof(*pending)) : NULL;

    if (!pending) {
        client_fail(client, id, BATON_EBUSY, "too many requests wait for their reply");
        return NULL;
    }
    *pending = (struct pending){client->agent, client->number, id};
    client->pending++;
    return pending;
}

struct client *client_settle(struct pending *pending, int64_t *ret_id)
{
    struct client *client = client_find(pending->agent, pending->client);

    *ret_id = pending->id;
    free(pending);
    if (client) {
        client->pending--;
    }
    return client;
}

void client_done(void *userdata, int code, const struct baton_error *error)
{
    int64_t id;
    struct client *client = client_settle(userdata, &id);

    if (client && code == BATON_OK) {
        client_reply(client, id, NULL);
    } else if (client) {
        client_fail(client, id, code, error ? error->message : baton_strerror(code));
    }
}

/* ---- Life ------------------------------------------------------------------------------------ */

struct client *client_find(struct agent *agent, uint64_t number)
{
    struct client *client;

    HASH_FIND(hh, agent->clients, &number, sizeof(number), client);
    return client;
}

static void on_message(struct local *local, json_t *message, void *userdata)
{
    (void)local;
    request_take(userdata, message);
}

static void on_drain(struct local *local, void *userdata)
{
    (void)local;
    lists_go_on(userdata);
}

/* A client whose messages take longer than a turn goes on after the others. */
static void on_turn(struct local *local, void *userdata)
{
    struct client *client = userdata;
    (void)local;

    (void)uv_idle_start(&client->agent->turns, clients_go_on);
}

void clients_go_on(uv_idle_t *turns)
{
    struct agent *agent = turns->data;

    (void)uv_idle_stop(turns); /* on_turn() starts it again */
    for (struct client *client = agent->clients; client; client = client->hh.next) {
        local_go_on(client->local);
    }
}

/* Of process 1 of the client's PID namespace. */
static void on_pidfd(struct local *local, int pidfd, void *userdata)
{
    struct client *client = userdata;
    (void)local;

    if (client->tenant) {
        tenant_take_container(client->tenant, pidfd);
    } else { /* before its hello */
        (void)close(pidfd);
    }
}

/* The process goes on: it may connect again. */
static void on_close(struct local *local, int code, const char *reason, void *userdata)
{
    struct client *client = userdata;
    struct agent *agent = client->agent;
    (void)local;

    if (code == BATON_EPROTO || code == BATON_ETOOBIG) {
        log_warning(agent->config.logger, "client-closed", LOG_I64("pid", client->peer.pid),
                    LOG_STR("process", client->tenant ? client->tenant->name : NULL),
                    LOG_STR("reason", reason));
    }
    data_end(client);
    lists_end(client);
    if (client->tenant) {
        client->tenant->client = NULL;
    }
    if (client->peer.pidfd >= 0) {
        (void)close(client->peer.pidfd);
    }
    HASH_DEL(agent->clients, client);
    free(client);
    agent_finish(agent);
}

bool client_has_room(const struct client *client, size_t all, size_t own)
{
    return client->peer.uid == 0
               ? all < AGENT_CLIENTS_MAX
               : all < AGENT_CLIENTS_MAX - AGENT_CLIENTS_SPARE && own < AGENT_CLIENTS_OF_A_USER_MAX;
}

static bool has_room(const struct client *client)
{
    size_t all = HASH_COUNT(client->agent->clients), own = 0;

    for (const struct client *at = client->agent->clients; at; at = at->hh.next) {
        own += at != client && at->peer.uid == client->peer.uid;
    }
    return client_has_room(client, all - 1, own); /* it is among them */
}

void client_accept(struct agent *agent, int fd)
{
    static const struct local_callbacks callbacks = {.on_message = on_message,
                                                     .on_close = on_close,
                                                     .on_pidfd = on_pidfd,
                                                     .on_drain = on_drain,
                                                     .on_turn = on_turn};
    struct client *client = calloc(1, sizeof(*client));
    struct baton_error error;

    if (!client) {
        (void)close(fd);
        return;
    }
    client->agent = agent;
    client->number = ++agent->last_number;
    client->peer.pidfd = -1;
    HASH_ADD(hh, agent->clients, number, sizeof(client->number), client);
    if (!client->hh.tbl) {
        (void)close(fd);
        free(client);
        return;
    }
    if (local_accept(&client->local, agent->config.loop, fd, &callbacks, client, &error) !=
        BATON_OK) {
        HASH_DEL(agent->clients, client);
        free(client);
        return;
    }
    if (local_peer(client->local, &client->peer, &error) != BATON_OK) {
        local_close(client->local);
        return;
    }
    if (!has_room(client)) {
        client_fail(client, 0, BATON_EBUSY,
                    "this agent has as many clients as it may have, or of your user");
        local_close(client->local);
    }
}

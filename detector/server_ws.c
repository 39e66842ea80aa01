/* The WebSocket connections of server.h. */
#include "detector/server_int.h"

#include <stdio.h>
#include <stdlib.h>

static struct peer *find_peer(const struct server *server, uint64_t number)
{
    struct peer *peer = server->peers;

    while (peer != NULL && peer->number != number) {
        peer = peer->next;
    }
    return peer;
}

static void drop(struct server *server, struct peer *peer, int code, const char *reason)
{
    if (!peer->is_dropped) {
        peer->is_dropped = true;
        server_receipts_presume(server, peer);
        web_socket_close(peer->socket, (unsigned)code, reason);
    }
}

/* ---- Events of a socket ---- */

static void on_text(void *userdata, const char *text, size_t bytes)
{
    struct peer *peer = userdata;
    struct server *server = peer->server;

    server_receipts_look(server); /* the message may come from the next owner */
    server->config.hooks.received(server->config.hooks.userdata, peer->number, text, bytes);
}

static void on_refused(void *userdata, const char *reason)
{
    struct peer *peer = userdata;
    const struct server_hooks *hooks = &peer->server->config.hooks;

    hooks->spoiled(hooks->userdata, peer->number, reason);
}

static void on_drain(void *userdata)
{
    struct peer *peer = userdata;
    const struct server_hooks *hooks = &peer->server->config.hooks;

    hooks->drained(hooks->userdata, peer->number);
}

static void on_closing(void *userdata)
{
    struct peer *peer = userdata;

    server_receipts_end(peer->server, peer);
}

static void on_close(void *userdata)
{
    struct peer *peer = userdata;
    struct server *server = peer->server;

    *peer->link = peer->next;
    if (peer->next != NULL) {
        peer->next->link = peer->link;
    }
    server->connections--;
    server->config.hooks.disconnected(server->config.hooks.userdata, peer->number);
    free(peer);
}

/* ---- New connections ---- */

/* Returns 0, or the status of a refusal and its reason. */
static unsigned check(const struct server *server, const struct web_request *request,
                      const char **ret_reason)
{
    char path[WEB_PATH_MAX];

    *ret_reason = web_socket_fault(request);
    if (*ret_reason == NULL) {
        *ret_reason = web_path(request->target, path);
    }
    if (*ret_reason != NULL) {
        return 400;
    }
    if (web_header(&request->head, "origin") != NULL) {
        *ret_reason = "a page in a browser cannot drive the worker: this request has an Origin";
        return 403;
    }
    *ret_reason = "a bearer token is needed";
    return server_has_token(server, request) ? 0 : 401;
}

static void refuse_surplus(struct server *server, struct peer *peer)
{
    char reason[REASON_MAX + 1];

    (void)snprintf(reason, sizeof(reason),
                   "%d connections are open, the most that are allowed; "
                   "close some, or try again later",
                   SERVER_CONNECTIONS_MAX);
    server->refused++;
    drop(server, peer, CLOSE_TRY_AGAIN_LATER, reason);
    server->config.hooks.refused(server->config.hooks.userdata);
}

static void established(struct server *server, struct peer *peer)
{
    peer->number = ++server->last_number;
    peer->server = server;
    peer->last = &peer->first;
    peer->next = server->peers;
    peer->link = &server->peers;
    if (peer->next != NULL) {
        peer->next->link = &peer->next;
    }
    server->peers = peer;
    server->connections++;
    if (server->connections > SERVER_CONNECTIONS_MAX) {
        refuse_surplus(server, peer);
    } else if (server->end_code != 0) {
        drop(server, peer, server->end_code, server->end_reason);
    } else {
        server->config.hooks.connected(server->config.hooks.userdata, peer->number);
    }
}

void server_ws_begin(struct server *server, struct web_exchange *exchange)
{
    struct web_socket_options options = {.message_max = server->config.message_max,
                                         .backlog_max = SERVER_BACKLOG_MAX,
                                         .ping_after_s = server->config.ping_after_s > 0
                                                             ? server->config.ping_after_s
                                                             : PING_AFTER_S,
                                         .callbacks = {.on_text = on_text,
                                                       .on_refused = on_refused,
                                                       .on_drain = on_drain,
                                                       .on_closing = on_closing,
                                                       .on_close = on_close}};
    const char *reason;
    unsigned status = check(server, web_exchange_request(exchange), &reason);
    struct peer *peer = status == 0 ? calloc(1, sizeof(*peer)) : NULL;

    if (peer == NULL) {
        web_refuse(exchange, status != 0 ? status : 503, status != 0 ? reason : "out of memory");
        return;
    }
    options.userdata = peer;
    peer->socket = web_socket_open(exchange, &options);
    if (peer->socket == NULL) {
        free(peer);
        return;
    }
    established(server, peer);
}

/* ---- Sending and closing ---- */

bool server_send(struct server *server, uint64_t number, const char *text, size_t bytes,
                 bool with_receipt)
{
    struct peer *peer = find_peer(server, number);

    if (peer == NULL || peer->is_dropped ||
        (with_receipt && web_socket_backlog(peer->socket) > 0) ||
        !web_socket_send(peer->socket, text, bytes)) {
        return false;
    }
    return !with_receipt || server_receipts_await(server, peer);
}

void server_drop(struct server *server, uint64_t number, int code, const char *reason)
{
    struct peer *peer = find_peer(server, number);

    if (peer != NULL) {
        drop(server, peer, code, reason);
    }
}

void server_end(struct server *server, int code, const char *reason)
{
    server->end_code = code;
    (void)snprintf(server->end_reason, sizeof(server->end_reason), "%s", reason);
    for (struct peer *peer = server->peers; peer != NULL; peer = peer->next) {
        drop(server, peer, code, reason);
    }
}

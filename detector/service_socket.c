/* The WebSocket connections of service.h: each is a backend of the worker, by its number.
 *
 * A message that needs a receipt is sent only where the system takes it at once, and has arrived
 * when the backend's system has acknowledged it:
 *
 *   send ──▶ our system keeps it ──▶ the backend's system has it: worker_delivered()
 *                └── the connection ends, or no acknowledgement comes: not delivered
 */
#include "detector/service_int.h"

#include "web/upgrade.h"

#include <stdlib.h>
#include <utlist.h>

enum {
    BACKLOG_MAX = 4 << 20, /* bytes that wait for a backend to read */
    PING_AFTER_S = 20,
    CLOSE_GOING_AWAY = 1001,
};

static struct peer *find_peer(const struct service *service, uint64_t number)
{
    struct peer *peer;

    DL_SEARCH_SCALAR(service->peers, peer, number, number);
    return peer;
}

void service_deliver(struct service *service)
{
    const struct peer *owner = find_peer(service, service->worker.owner);

    if (owner != NULL && service->worker.outbox.handed > 0) {
        worker_delivered(&service->worker, owner->number, web_socket_arrived(owner->socket));
    }
}

/* ---- Events of a socket ---------------------------------------------------------------------- */

static void on_text(void *userdata, const char *text, size_t bytes)
{
    const struct peer *peer = userdata;

    /* An error is an event already. */
    (void)worker_receive(&peer->service->worker, peer->number, text, bytes);
}

static void on_refused(void *userdata, const char *reason)
{
    const struct peer *peer = userdata;

    worker_refuse(&peer->service->worker, peer->number, reason);
}

static void on_drain(void *userdata)
{
    worker_flush(&((struct peer *)userdata)->service->worker);
}

static void on_closing(void *userdata)
{
    service_deliver(((struct peer *)userdata)->service);
}

static void on_close(void *userdata)
{
    struct peer *peer = userdata;
    struct service *service = peer->service;

    DL_DELETE(service->peers, peer);
    service->connections--;
    worker_disconnected(&service->worker, peer->number);
    free(peer);
}

/* ---- New connections ------------------------------------------------------------------------- */

static void say_goodbye(const struct peer *peer)
{
    web_socket_close(peer->socket, CLOSE_GOING_AWAY, "this worker ends");
}

void service_socket_begin(struct service *service, struct web_exchange *exchange)
{
    struct peer *peer = calloc(1, sizeof(*peer));
    struct web_socket_options options = {
        .message_max = PROTOCOL_MESSAGE_MAX,
        .backlog_max = BACKLOG_MAX,
        .ping_after_s = PING_AFTER_S,
        .callbacks = {on_text, on_refused, on_drain, on_closing, on_close},
        .userdata = peer};

    if (peer == NULL) {
        web_refuse(exchange, 503, "out of memory");
        return;
    }
    peer->socket = web_socket_open(exchange, &options);
    if (peer->socket == NULL) {
        free(peer);
        return;
    }
    peer->service = service;
    peer->number = ++service->last_number;
    DL_APPEND(service->peers, peer);
    service->connections++;
    if (service->drain == DRAIN_GOODBYE) {
        say_goodbye(peer);
    } else {
        worker_connected(&service->worker, peer->number);
    }
}

/* ---- Sending and closing --------------------------------------------------------------------- */

bool service_send(void *userdata, uint64_t backend, const char *text, size_t bytes,
                  uint64_t *ret_end)
{
    struct service *service = userdata;
    struct peer *peer = find_peer(service, backend);

    if (peer == NULL || (ret_end != NULL && web_socket_backlog(peer->socket) > 0) ||
        !web_socket_send(peer->socket, text, bytes)) {
        return false;
    }
    if (ret_end != NULL) {
        *ret_end = web_socket_sent(peer->socket);
        service_look(service);
    }
    return true;
}

/* What was written only just now arrives before our close does, if the connection works. */
static void presume_delivered(struct service *service, const struct peer *peer)
{
    service_deliver(service);
    if (!web_socket_is_overdue(peer->socket)) {
        worker_delivered(&service->worker, peer->number, web_socket_sent(peer->socket));
    }
}

void service_drop(void *userdata, uint64_t backend, int code, const char *reason)
{
    struct service *service = userdata;
    struct peer *peer = find_peer(service, backend);

    log_notice(service->config.web.logger, "backend-closed", LOG_U64("backend", backend),
               LOG_I64("code", code), LOG_STR("reason", reason));
    if (peer != NULL) {
        presume_delivered(service, peer);
        web_socket_close(peer->socket, (unsigned)code, reason);
    }
}

void service_goodbye(struct service *service)
{
    struct peer *peer = NULL;

    DL_FOREACH (service->peers, peer) {
        presume_delivered(service, peer);
        say_goodbye(peer);
    }
}

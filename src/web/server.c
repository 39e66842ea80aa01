#include "net/tls.h"
#include "web/server_int.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum { BACKLOG = 4096 };

static void on_connection(int fd, void *userdata)
{
    web_exchange_accept(userdata, fd);
}

static void on_tick(uv_timer_t *timer)
{
    struct web_server *server = timer->data;
    struct web_exchange *exchange;

    for (exchange = server->exchanges; exchange != NULL; exchange = exchange->next) {
        web_exchange_tick(exchange);
    }
}

/* A handler may answer, and so ask for the next turn. No connection is gone before this returns. */
static void on_soon(uv_timer_t *timer)
{
    struct web_server *server = timer->data;
    struct web_exchange *due = server->draining;

    server->draining = NULL;
    while (due != NULL) {
        struct web_exchange *exchange = due;
        DL_DELETE2(due, exchange, drain_prev, drain_next);
        exchange->wants_drain = false;
        if (exchange->phase == PHASE_STREAMS && !stream_has_backlog(exchange->stream)) {
            server->config.callbacks.on_drain(server->config.userdata, exchange);
        } else if (exchange->phase == PHASE_SOCKET) {
            web_socket_drain(exchange->socket);
        }
    }
}

void web_exchange_drain_soon(struct web_exchange *exchange)
{
    struct web_server *server = exchange->server;

    if (!server->is_closing && !exchange->wants_drain) {
        exchange->wants_drain = true;
        DL_APPEND2(server->draining, exchange, drain_prev, drain_next);
        (void)uv_timer_start(&server->soon, on_soon, 0, 0);
    }
}

static void start(struct web_server *server)
{
    uv_loop_t *loop = server->config.loop;

    (void)uv_timer_init(loop, &server->ticker); /* these cannot fail */
    (void)uv_timer_init(loop, &server->soon);
    server->ticker.data = server->soon.data = server;
    (void)uv_timer_start(&server->ticker, on_tick, TICK_MS, TICK_MS);
}

int web_server_open(struct web_server **ret, const struct web_config *config,
                    struct baton_error *reterr)
{
    struct web_server *server = calloc(1, sizeof(*server));
    struct listener_options options = {.loop = config->loop,
                                       .logger = config->logger,
                                       .backlog = BACKLOG,
                                       .on_connection = on_connection,
                                       .userdata = server};
    int code = BATON_OK, failed;

    if (server == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a server");
    }
    if (config->tls_cert != NULL) {
        code = tls_new_server(&server->tls, config->tls_cert, config->tls_key, reterr);
    }
    failed =
        code == BATON_OK ? web_listen(&server->listener, &options, config->host, config->port) : -1;
    if (failed != 0) {
        web_server_free(server);
        return code != BATON_OK ? code
                                : error_set(reterr, BATON_EIO,
                                            "cannot listen there: %s; is the address this "
                                            "machine's and the port free?",
                                            strerror(-failed));
    }
    server->config = *config;
    server->config.host = server->config.tls_cert = server->config.tls_key = NULL;
    server->port = listener_port(server->listener);
    start(server);
    *ret = server;
    return BATON_OK;
}

int web_server_port(const struct web_server *server)
{
    return server->port;
}

unsigned web_server_connections(const struct web_server *server)
{
    return server->count;
}

size_t web_server_backlog(const struct web_server *server)
{
    const struct web_exchange *exchange;
    size_t bytes = 0;

    for (exchange = server->exchanges; exchange != NULL; exchange = exchange->next) {
        bytes += stream_backlog(exchange->stream);
    }
    return bytes;
}

void web_server_close(struct web_server *server)
{
    struct web_exchange *exchange;

    if (server == NULL || server->is_closing) {
        return;
    }
    server->is_closing = true;
    listener_end(server->listener);
    uv_close((uv_handle_t *)&server->ticker, NULL);
    uv_close((uv_handle_t *)&server->soon, NULL);
    for (exchange = server->exchanges; exchange != NULL; exchange = exchange->next) {
        stream_close(exchange->stream);
    }
}

void web_server_free(struct web_server *server)
{
    if (server != NULL) {
        tls_free(server->tls);
        free(server);
    }
}

bool web_shows_token(const struct web_request *request, const char *token)
{
    const char *shown = web_header(&request->head, "authorization");
    size_t bytes = strlen(token);

    return shown != NULL && web_header_count(&request->head, "authorization") == 1 &&
           strncasecmp(shown, "Bearer ", 7) == 0 && strlen(shown + 7) == bytes &&
           CRYPTO_memcmp(shown + 7, token, bytes) == 0;
}

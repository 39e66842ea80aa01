#include "web/server_int.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

static void on_connection(uv_stream_t *listener, int status)
{
    struct web_server *server = listener->data;

    if (status == 0 && !server->is_closing) {
        web_exchange_accept(server);
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct web_server *server = timer->data;
    struct web_exchange *exchange;

    for (exchange = server->exchanges; exchange != NULL; exchange = exchange->next) {
        web_exchange_tick(exchange);
    }
}

/* A handler may answer, and so ask for the next turn. */
static void on_soon(uv_timer_t *timer)
{
    struct web_server *server = timer->data;
    const struct web_callbacks *callbacks = &server->config.callbacks;
    struct web_exchange *exchange;

    for (exchange = server->exchanges; exchange != NULL; exchange = exchange->next) {
        if (exchange->wants_drain && exchange->phase == PHASE_STREAMS) {
            exchange->wants_drain = false;
            callbacks->on_drain(server->config.userdata, exchange);
        }
    }
}

void web_server_drain_soon(struct web_server *server)
{
    if (server->config.callbacks.on_drain != NULL && !server->is_closing) {
        (void)uv_timer_start(&server->soon, on_soon, 0, 0);
    }
}

int web_server_open(struct web_server **ret, const struct web_config *config,
                    struct baton_error *reterr)
{
    struct web_server *server = calloc(1, sizeof(*server));
    int fd = server != NULL ? web_listen(config->host, config->port) : -1;

    if (server == NULL || fd < 0) {
        free(server);
        return server == NULL ? error_set(reterr, BATON_ENOMEM, "out of memory for a server")
                              : error_set(reterr, BATON_EIO, "%s", strerror(-fd));
    }
    server->config = *config;
    server->config.host = NULL;                         /* borrowed for the call */
    (void)uv_timer_init(config->loop, &server->ticker); /* these cannot fail */
    (void)uv_timer_init(config->loop, &server->soon);
    (void)uv_tcp_init(config->loop, &server->listener);
    server->ticker.data = server->soon.data = server->listener.data = server;
    (void)uv_tcp_open(&server->listener, fd);
    (void)uv_listen((uv_stream_t *)&server->listener, SOMAXCONN, on_connection);
    (void)uv_timer_start(&server->ticker, on_tick, TICK_MS, TICK_MS);
    *ret = server;
    return BATON_OK;
}

int web_server_port(const struct web_server *server)
{
    struct sockaddr_storage address;
    int bytes = sizeof(address);

    if (uv_tcp_getsockname(&server->listener, (struct sockaddr *)&address, &bytes) != 0) {
        return 0;
    }
    return ntohs(address.ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)&address)->sin6_port
                                               : ((const struct sockaddr_in *)&address)->sin_port);
}

void web_server_close(struct web_server *server)
{
    struct web_exchange *exchange;

    if (server == NULL || server->is_closing) {
        return;
    }
    server->is_closing = true;
    uv_close((uv_handle_t *)&server->listener, NULL);
    uv_close((uv_handle_t *)&server->ticker, NULL);
    uv_close((uv_handle_t *)&server->soon, NULL);
    for (exchange = server->exchanges; exchange != NULL; exchange = exchange->next) {
        stream_close(exchange->stream);
    }
}

void web_server_free(struct web_server *server)
{
    free(server);
}

bool web_shows_token(const struct web_request *request, const char *token)
{
    const char *shown = web_request_header(request, "authorization");
    size_t bytes = strlen(token);

    return shown != NULL && web_request_count(request, "authorization") == 1 &&
           strncasecmp(shown, "Bearer ", 7) == 0 && strlen(shown + 7) == bytes &&
           CRYPTO_memcmp(shown + 7, token, bytes) == 0;
}

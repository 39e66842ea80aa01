#include "detector/server_int.h"

#include <stdlib.h>
#include <string.h>

unsigned server_connections(const struct server *server)
{
    return server->connections;
}

uint64_t server_refused(const struct server *server)
{
    return server->refused;
}

bool server_has_token(const struct server *server, const struct web_request *request)
{
    return server->token == NULL || web_shows_token(request, server->token);
}

static void on_request(void *userdata, struct web_exchange *exchange)
{
    struct server *server = userdata;

    if (web_header(&web_exchange_request(exchange)->head, "upgrade") != NULL) {
        server_ws_begin(server, exchange);
    } else {
        server_http_begin(server, exchange);
    }
}

static void on_drain(void *userdata, struct web_exchange *exchange)
{
    server_http_drained(userdata, exchange);
}

static void on_gone(void *userdata, struct web_exchange *exchange)
{
    server_http_gone(userdata, exchange);
}

static int listen_there(struct server *server, struct baton_error *reterr)
{
    struct web_config config = {
        .loop = server->config.loop,
        .host = server->host,
        .port = server->config.port,
        .tls_cert = server->config.tls_cert,
        .tls_key = server->config.tls_key,
        .connections_max = SERVER_CONNECTIONS_MAX + CONNECTIONS_SPARE,
        .head_within_s = HEAD_WITHIN_S,
        .read_within_s = READ_WITHIN_S,
        .answer_within_s = ANSWER_WITHIN_S,
        .head_max = WEB_HEAD_MAX,
        .answer_max = SERVER_BODY_MAX + SERVER_BACKLOG_MAX,
        .callbacks = {.on_request = on_request, .on_drain = on_drain, .on_gone = on_gone},
        .userdata = server};
    struct baton_error why;
    int rc = web_server_open(&server->web, &config, &why);

    if (rc == BATON_EINVAL) {
        return error_set(reterr, rc, "%s", why.message);
    }
    return rc == 0
               ? 0
               : error_set(reterr, rc,
                           "%s%s port %d: cannot listen there: %s; is the address this machine's, "
                           "and the port free?",
                           server->host != NULL ? "--host " : "every address,",
                           server->host != NULL ? server->host : "", server->config.port,
                           why.message);
}

static char *copy(const char *text)
{
    return text != NULL ? strdup(text) : NULL;
}

int server_open(struct server **ret, const struct server_config *config, struct baton_error *reterr)
{
    struct server *server = calloc(1, sizeof(*server));
    int rc;

    if (server == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for the server");
    }
    server->config = *config;
    server->host = copy(config->host);
    server->token = copy(config->token);
    rc = listen_there(server, reterr);
    if (rc != 0) {
        server_free(server);
        return rc;
    }
    (void)uv_timer_init(config->loop, &server->receiver); /* cannot fail */
    server->receiver.data = server;
    server->has_timer = true;
    *ret = server;
    return 0;
}

int server_port(const struct server *server)
{
    return web_server_port(server->web);
}

void server_close(struct server *server)
{
    if (server == NULL) {
        return;
    }
    web_server_close(server->web);
    if (server->has_timer) {
        server->has_timer = false;
        uv_close((uv_handle_t *)&server->receiver, NULL);
    }
}

void server_free(struct server *server)
{
    if (server == NULL) {
        return;
    }
    web_server_free(server->web);
    free(server->host);
    free(server->token);
    free(server);
}

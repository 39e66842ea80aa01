#include "member/status_server.h"

#include "base/host.h"
#include "base/json_text.h"
#include "web/host.h"
#include "web/server.h"

#include <stdlib.h>
#include <string.h>

enum { HEAD_MAX = 4096, HEAD_WITHIN_S = 3, READ_WITHIN_S = 30 };

struct http_server {
    struct web_server *web;
    struct http_config config;
    char *host;
    char *token;
};

/* 0: the request may be answered; else the status of the refusal. */
static unsigned admit(const struct http_server *server, const struct web_request *request,
                      const char *path)
{
    const struct http_config *config = &server->config;
    const char *host = web_header(&request->head, "host");
    const char *origin = web_header(&request->head, "origin");
    const char *name = origin ? strstr(origin, "://") : NULL;

    if (!host || !web_host_is_ours(config->host, config->hosts, host)) {
        return 403;
    }
    if (origin && (!name || !web_host_is_ours(config->host, config->hosts, name + 3))) {
        return 403;
    }
    return server->token && strcmp(path, "/healthz") != 0 &&
                   !web_shows_token(request, server->token)
               ? 401
               : 0;
}

static const char *reason_of(unsigned status)
{
    return status == 401   ? "a bearer token is needed"
           : status == 403 ? "this host or origin is not allowed; see --http-host"
           : status == 404 ? "no such page"
                           : "the node cannot answer now";
}

void http_answer_json(struct http_answer *answer, unsigned status, json_t *json)
{
    char *text = json ? json_text(json, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

    answer->status = text ? status : 500;
    answer->type = "application/json";
    if (text) {
        buffer_put_text(&answer->body, text);
        buffer_put_text(&answer->body, "\n");
    }
    free(text);
    json_decref(json);
}

static void answer_page(struct http_server *server, struct web_exchange *exchange, const char *path)
{
    struct http_answer page = {.status = 404, .type = "text/plain; charset=utf-8"};

    buffer_init(&page.body, HTTP_BODY_MAX);
    server->config.on_request(server->config.userdata, path, &page);
    if (page.body.failed || (page.body.bytes == 0 && page.status >= 400)) {
        page.status = page.body.failed ? 500 : page.status;
        web_refuse(exchange, page.status, reason_of(page.status));
    } else {
        struct web_answer answer = {.status = page.status,
                                    .type = page.type,
                                    .headers = "cache-control: no-store\r\n",
                                    .body = page.body.data,
                                    .bytes = page.body.bytes};
        web_answer(exchange, &answer);
    }
    buffer_fini(&page.body);
}

static void on_request(void *userdata, struct web_exchange *exchange)
{
    struct http_server *server = userdata;
    const struct web_request *request = web_exchange_request(exchange);
    char path[WEB_PATH_MAX];
    const char *fault = request->is_upgrade ? "this server upgrades to no other protocol"
                                            : web_path(request->target, path);
    unsigned status = fault ? 400 : admit(server, request, path);

    if (status != 0) {
        web_refuse(exchange, status, fault ? fault : reason_of(status));
    } else {
        answer_page(server, exchange, path);
    }
}

static int copy_config(struct http_server *server, const struct http_config *config)
{
    server->config = *config;
    server->host = strdup(config->host);
    server->token = config->token ? strdup(config->token) : NULL;
    server->config.host = server->host;
    server->config.token = server->token;
    return server->host && (server->token || !config->token) ? 0 : BATON_ENOMEM;
}

static int start(struct http_server *server, struct baton_error *reterr)
{
    struct web_config config = {.loop = server->config.loop,
                                .logger = server->config.logger,
                                .host = server->host,
                                .port = server->config.port,
                                .connections_max = HTTP_CLIENTS_MAX,
                                .head_within_s = HEAD_WITHIN_S,
                                .read_within_s = READ_WITHIN_S,
                                .head_max = HEAD_MAX,
                                .answer_max = HTTP_BODY_MAX + 65536,
                                .callbacks = {.on_request = on_request},
                                .userdata = server};
    int code = web_server_open(&server->web, &config, reterr);

    return code == BATON_EIO ? error_wrap(reterr, "--http %s:%d", server->host, config.port) : code;
}

int http_server_open(struct http_server **ret, const struct http_config *config,
                     struct baton_error *reterr)
{
    if (!config->token && !host_is_loopback(config->host)) {
        return error_set(reterr, BATON_EAUTH,
                         "--http %s: off the loopback interface a token is needed; give "
                         "--http-token-file",
                         config->host);
    }
    struct http_server *server = calloc(1, sizeof(*server));
    int code = server ? copy_config(server, config) : BATON_ENOMEM;
    code = code ? error_set(reterr, code, "out of memory") : start(server, reterr);
    if (code) {
        http_server_free(server);
        return code;
    }
    *ret = server;
    return 0;
}

int http_server_set_token(struct http_server *server, const char *token, struct baton_error *reterr)
{
    char *copy = strdup(token);

    if (!copy) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    free(server->token);
    server->config.token = server->token = copy;
    return BATON_OK;
}

int http_server_port(const struct http_server *server)
{
    return web_server_port(server->web);
}

void http_server_close(struct http_server *server)
{
    if (server) {
        web_server_close(server->web);
    }
}

void http_server_free(struct http_server *server)
{
    if (!server) {
        return;
    }
    web_server_free(server->web);
    free(server->host);
    free(server->token);
    free(server);
}

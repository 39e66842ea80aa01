#include "net/http_server.h"

#include "base/host.h"
#include "net/web_host.h"
#include "net/web_listen.h"
#include "net/web_request.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

enum { HOSTS_MAX = 16, HEAD_WITHIN_S = 3 };

struct http_server {
    struct lws_context *context;
    struct lws_vhost *vhost;
    struct http_config config;
    struct lws_protocols protocols[2];
    char *host;
    char *token;
    char *hosts[HOSTS_MAX + 1];
};

/* What lws keeps for each connection. */
struct exchange {
    struct http_answer answer;
    bool has_answer;
    bool is_last; /* nothing that follows on this connection is a request */
};

bool http_host_is_allowed(const struct http_config *config, const char *host)
{
    char name[WEB_HEADER_MAX];
    return web_host_name(host, name, sizeof(name)) &&
           web_name_is_ours(config->host, config->hosts, name);
}

static bool is_token_right(const struct http_server *server, const char *shown)
{
    size_t bytes = strlen(server->token);
    return strncasecmp(shown, "Bearer ", 7) == 0 && strlen(shown + 7) == bytes &&
           CRYPTO_memcmp(shown + 7, server->token, bytes) == 0;
}

/* 0: let in; else the status to refuse with. */
static unsigned admit(const struct http_server *server, struct lws *wsi, const char *path)
{
    char text[WEB_HEADER_MAX];
    if (!web_header(wsi, WSI_TOKEN_HOST, text) || !http_host_is_allowed(&server->config, text)) {
        return 403;
    }
    if (web_header(wsi, WSI_TOKEN_ORIGIN, text)) {
        const char *name = strstr(text, "://");
        if (!name || !http_host_is_allowed(&server->config, name + 3)) {
            return 403;
        }
    }
    if (server->token && strcmp(path, "/healthz") != 0 &&
        (!web_header(wsi, WSI_TOKEN_HTTP_AUTHORIZATION, text) || !is_token_right(server, text))) {
        return 401;
    }
    return 0;
}

static const char *refusal(unsigned status)
{
    return status == 401   ? "a bearer token is needed\n"
           : status == 403 ? "this host or origin is not allowed; see --http-host\n"
           : status == 405 ? "only GET and HEAD are answered\n"
                           : "no such page\n";
}

static int send_headers(struct lws *wsi, struct exchange *exchange)
{
    unsigned char space[LWS_PRE + 1024];
    unsigned char *start = space + LWS_PRE;
    unsigned char *at = start;
    unsigned char *end = space + sizeof(space) - 1;
    static const char nosniff[] = "nosniff";
    static const char no_store[] = "no-store";
    if (lws_add_http_common_headers(wsi, exchange->answer.status, exchange->answer.type,
                                    exchange->answer.body.bytes, &at, end) ||
        lws_add_http_header_by_name(
            wsi, (const unsigned char *)"x-content-type-options:", (const unsigned char *)nosniff,
            sizeof(nosniff) - 1, &at, end) ||
        lws_add_http_header_by_name(
            wsi, (const unsigned char *)"cache-control:", (const unsigned char *)no_store,
            sizeof(no_store) - 1, &at, end)) {
        return -1;
    }
    return lws_finalize_write_http_header(wsi, start, &at, end) ? -1 : 0;
}

/* What the socket has no room for yet goes first: then lws waits for it, for as long as it does. */
static int complete(struct lws *wsi, const struct exchange *exchange)
{
    if (exchange->is_last && !lws_partial_buffered(wsi)) {
        return -1;
    }
    return lws_http_transaction_completed(wsi) ? -1 : 0;
}

static int on_request(struct http_server *server, struct lws *wsi, struct exchange *exchange,
                      const char *path)
{
    bool is_head = lws_hdr_total_length(wsi, WSI_TOKEN_HEAD_URI) > 0;
    bool is_get = lws_hdr_total_length(wsi, WSI_TOKEN_GET_URI) > 0;
    const char *fault = is_get || is_head ? web_request_fault(wsi) : NULL;
    unsigned status = !is_get && !is_head ? 405 : fault ? 400 : admit(server, wsi, path);
    buffer_fini(&exchange->answer.body);
    buffer_init(&exchange->answer.body, HTTP_BODY_MAX);
    exchange->has_answer = true;
    exchange->is_last = status == 405 || status == 400 || web_request_is_last(wsi);
    exchange->answer.status = status ? status : 404;
    exchange->answer.type = "text/plain; charset=utf-8";
    if (status == 0) {
        server->config.on_request(server->config.userdata, path, &exchange->answer);
    }
    if (fault) {
        buffer_printf(&exchange->answer.body, "%s\n", fault);
    } else if (exchange->answer.body.bytes == 0 && exchange->answer.status >= 400) {
        buffer_put_text(&exchange->answer.body, refusal(exchange->answer.status));
    }
    if (exchange->answer.body.failed || send_headers(wsi, exchange)) {
        return -1;
    }
    if (is_head || exchange->answer.body.bytes == 0) {
        buffer_clear(&exchange->answer.body);
        return complete(wsi, exchange);
    }
    lws_callback_on_writable(wsi);
    return 0;
}

static int on_writable(struct lws *wsi, struct exchange *exchange)
{
    struct buffer *body = &exchange->answer.body;
    if (!exchange->has_answer || body->bytes == 0) {
        return 0;
    }
    int sent = lws_write(wsi, body->data, body->bytes, LWS_WRITE_HTTP_FINAL);
    bool is_done = sent >= 0 && (size_t)sent == body->bytes; /* lws keeps what the socket refuses */
    buffer_clear(body);
    exchange->has_answer = false;
    return is_done ? complete(wsi, exchange) : -1;
}

static int on_lws(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                  size_t bytes)
{
    struct exchange *exchange = user;
    const struct lws_protocols *protocol = wsi ? lws_get_protocol(wsi) : NULL;
    (void)bytes;
    switch (reason) {
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
        /* lws would offer HTTP/2 here, which writes in front of the body: 1 means "answered". */
        return lws_return_http_status(wsi, HTTP_STATUS_BAD_REQUEST, NULL) < 0 ? -1 : 1;
    case LWS_CALLBACK_HTTP:
        return on_request(protocol->user, wsi, exchange, in);
    case LWS_CALLBACK_HTTP_WRITEABLE:
        return on_writable(wsi, exchange);
    case LWS_CALLBACK_HTTP_BODY_COMPLETION:
        return 0;
    case LWS_CALLBACK_CLOSED_HTTP:
    case LWS_CALLBACK_HTTP_DROP_PROTOCOL:
        if (exchange) {
            buffer_fini(&exchange->answer.body);
            exchange->has_answer = false;
        }
        return 0;
    case LWS_CALLBACK_FILTER_HTTP_CONNECTION:
    default:
        return 0;
    }
}

static int copy_config(struct http_server *server, const struct http_config *config)
{
    server->config = *config;
    server->host = strdup(config->host);
    server->token = config->token ? strdup(config->token) : NULL;
    for (size_t i = 0; config->hosts && config->hosts[i] && i < HOSTS_MAX; i++) {
        server->hosts[i] = strdup(config->hosts[i]);
        if (!server->hosts[i]) {
            return BATON_ENOMEM;
        }
    }
    server->config.host = server->host;
    server->config.token = server->token;
    server->config.hosts = (const char *const *)server->hosts;
    return server->host && (server->token || !config->token) ? 0 : BATON_ENOMEM;
}

static int start(struct http_server *server, struct baton_error *reterr)
{
    struct lws_context_creation_info info = {
        .fd_limit_per_thread = HTTP_CLIENTS_MAX + 8,
        .max_http_header_data = 4096,
        .max_http_header_pool =
            HTTP_CLIENTS_MAX, /* allocated when used: a slow head delays no other */
    };

    server->context = web_begin(server->config.loop, &info);
    if (!server->context) {
        return error_set(reterr, BATON_ENOMEM,
                         "the status server cannot start: is "
                         "libwebsockets-evlib-uv installed?");
    }
    server->protocols[0] = (struct lws_protocols){.name = "http",
                                                  .callback = on_lws,
                                                  .per_session_data_size = sizeof(struct exchange),
                                                  .user = server};
    info.protocols = server->protocols;
    info.port = server->config.port;
    info.vhost_name = "status";
    info.timeout_secs = info.timeout_secs_ah_idle = HEAD_WITHIN_S;
    info.keepalive_timeout = 5;
    server->vhost = web_listen(server->context, &info, server->host);
    if (!server->vhost) {
        return error_set(reterr, BATON_EIO,
                         "--http %s:%d: cannot listen there; is the address this machine's and "
                         "the port free?",
                         server->host, server->config.port);
    }
    return 0;
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
    if (code) {
        http_server_free(server);
        return error_set(reterr, code, "out of memory");
    }
    code = start(server, reterr);
    if (code) {
        http_server_close(server);
        web_finish_closing(config->loop);
        http_server_free(server);
        return code;
    }
    *ret = server;
    return 0;
}

int http_server_port(const struct http_server *server)
{
    return lws_get_vhost_listen_port(server->vhost);
}

void http_server_close(struct http_server *server)
{
    if (server && server->context) {
        lws_context_destroy(server->context);
    }
}

void http_server_free(struct http_server *server)
{
    if (!server) {
        return;
    }
    if (server->context) {
        lws_context_destroy(server->context); /* the second half, after the loop's handles closed */
    }
    for (size_t i = 0; i < HOSTS_MAX; i++) {
        free(server->hosts[i]);
    }
    free(server->host);
    free(server->token);
    free(server);
}

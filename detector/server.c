#include "detector/server_int.h"

#include "detector/web_listen.h"
#include "detector/web_request.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

void server_link(struct peer **list, struct peer *peer)
{
    peer->next = *list;
    peer->link = list;
    if (peer->next != NULL) {
        peer->next->link = &peer->next;
    }
    *list = peer;
}

void server_unlink(struct peer *peer)
{
    *peer->link = peer->next;
    if (peer->next != NULL) {
        peer->next->link = peer->link;
    }
}

/* ---- who may come in ---- */

/* What libwebsockets would hang up on without a word. */
static bool is_whole_handshake(struct lws *wsi)
{
    char connection[WEB_HEADER_MAX], version[WEB_HEADER_MAX], key[KEY_MAX];

    return web_header(wsi, WSI_TOKEN_HTTP, version) && strcmp(version, "HTTP/1.1") == 0 &&
           lws_hdr_total_length(wsi, WSI_TOKEN_HOST) > 0 &&
           lws_hdr_copy(wsi, key, sizeof(key), WSI_TOKEN_KEY) > 0 &&
           web_header(wsi, WSI_TOKEN_CONNECTION, connection) &&
           web_list_has(connection, "upgrade") &&
           lws_hdr_total_length(wsi, WSI_TOKEN_PROTOCOL) <= 0;
}

/* 0 to go on, 1: refused with an answer, -1: hang up. */
static int on_upgrade(const struct server *server, struct lws *wsi, const char *to)
{
    const char *fault = server_head_fault(wsi, true);
    const char *reason = fault != NULL ? fault : web_request_fault(wsi);
    char version[WEB_HEADER_MAX];
    unsigned status = 0;

    if (strcasecmp(to, "websocket") != 0) {
        status = HTTP_STATUS_BAD_REQUEST; /* to HTTP/2, where this check would not be asked again */
        reason = "only an upgrade to websocket is known";
    } else if (lws_hdr_total_length(wsi, WSI_TOKEN_GET_URI) <= 0) {
        status = HTTP_STATUS_BAD_REQUEST;
        reason = "a WebSocket begins with a GET";
    } else if (reason != NULL) {
        status = HTTP_STATUS_BAD_REQUEST;
    } else if (!web_header(wsi, WSI_TOKEN_VERSION, version) || strcmp(version, "13") != 0) {
        status = HTTP_STATUS_BAD_REQUEST; /* without one it would be let in */
        reason = "only WebSocket version 13 is known: Sec-WebSocket-Version";
    } else if (!is_whole_handshake(wsi)) {
        status = HTTP_STATUS_BAD_REQUEST;
        reason = "the WebSocket handshake is not whole: it needs HTTP/1.1, a Host, Connection: "
                 "Upgrade and a Sec-WebSocket-Key, and may ask for no subprotocol";
    } else if (web_has_header(wsi, WSI_TOKEN_ORIGIN)) {
        status = HTTP_STATUS_FORBIDDEN;
        reason = "a page in a browser cannot drive the worker: this request has an Origin";
    } else if (!server_has_token(server, wsi)) {
        status = HTTP_STATUS_UNAUTHORIZED;
        reason = "a bearer token is needed";
    }
    if (status == 0) {
        return 0;
    }
    return server_refuse(wsi, status, reason) < 0 ? -1 : 1;
}

unsigned server_connections(const struct server *server)
{
    return server->connections;
}

uint64_t server_refused(const struct server *server)
{
    return server->refused;
}

/* ---- libwebsockets ---- */

static int on_lws(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                  size_t bytes)
{
    struct peer *peer = user;
    struct server *server = server_of(wsi);
    const char *fault;

    switch (reason) {
    case LWS_CALLBACK_SERVER_NEW_CLIENT_INSTANTIATED:
        return server_head_new(server, wsi);
    case LWS_CALLBACK_HTTP_BIND_PROTOCOL: /* before each request is given to us, and after it */
        server_head_begins(wsi);
        return 0;
    case LWS_CALLBACK_WSI_DESTROY:
        server_head_free(wsi);
        return 0;
    case LWS_CALLBACK_RAW_ADOPT: /* after CONNECT: a tunnel, which nothing would ever end */
        (void)server_refuse(wsi, HTTP_STATUS_METHOD_NOT_ALLOWED, ONLY_GET_AND_HEAD);
        return -1;
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
        return on_upgrade(server, wsi, in);
    case LWS_CALLBACK_ESTABLISHED:
        if (lws_get_network_wsi(wsi) != wsi) {
            return -1; /* a WebSocket within HTTP/2 */
        }
        server_head_ends(wsi);
        server_ws_established(server, wsi, peer);
        return 0;
    case LWS_CALLBACK_RECEIVE:
        return server_ws_received(server, wsi, peer, in, bytes);
    case LWS_CALLBACK_RECEIVE_PONG:
        peer->quiet_s = 0;
        return 0;
    case LWS_CALLBACK_SERVER_WRITEABLE:
        return server_ws_writable(server, wsi, peer);
    case LWS_CALLBACK_CLOSED:
        server_ws_closed(server, peer);
        return 0;
    case LWS_CALLBACK_HTTP:
        fault = server_head_fault(wsi, false);
        server_head_ends(wsi);
        return server_on_request(server, wsi, peer, fault);
    case LWS_CALLBACK_HTTP_WRITEABLE:
        return server_on_http_writable(server, wsi, peer);
    case LWS_CALLBACK_CLOSED_HTTP:
    case LWS_CALLBACK_HTTP_DROP_PROTOCOL:
        if (peer != NULL && server != NULL) {
            server_on_http_closed(server, peer);
        }
        return 0;
    default:
        return 0;
    }
}

struct server *server_of(struct lws *wsi)
{
    const struct lws_protocols *protocol = wsi != NULL ? lws_get_protocol(wsi) : NULL;
    return protocol != NULL && protocol->callback == on_lws ? protocol->user : NULL;
}

static char *copy(const char *text)
{
    return text != NULL ? strdup(text) : NULL;
}

/* lws would only say that it cannot listen. */
static int check_certificate(const struct server *server, struct baton_error *reterr)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    const char *file = server->tls_cert, *what = "--tls-cert", *reason;
    int rc = 0;

    if (context == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for TLS");
    }
    ERR_clear_error();
    if (SSL_CTX_use_certificate_chain_file(context, file) != 1) {
        rc = BATON_EINVAL;
    } else if (SSL_CTX_use_PrivateKey_file(context, server->tls_key, SSL_FILETYPE_PEM) != 1) {
        rc = BATON_EINVAL;
        file = server->tls_key;
        what = "--tls-key";
    }
    if (rc != 0) {
        unsigned long code = ERR_peek_error();
        reason = ERR_SYSTEM_ERROR(code) ? strerror((int)ERR_GET_REASON(code))
                                        : ERR_reason_error_string(code);
        rc = error_set(reterr, rc,
                       "%s %s: cannot be used: %s; it must be a readable PEM file, and the key "
                       "that of the certificate",
                       what, file, reason != NULL ? reason : "unknown reason");
    }
    ERR_clear_error();
    SSL_CTX_free(context);
    return rc;
}

static int start(struct server *server, struct baton_error *reterr)
{
    static const lws_retry_bo_t no_pings = {0}; /* of its own; it keeps the pointer */
    struct lws_context_creation_info info = {
        .fd_limit_per_thread = SOCKETS_MAX,
        .max_http_header_data = HEADERS_MAX,
        .max_http_header_pool = SOCKETS_MAX, /* nobody waits for one */
    };

    server->context = web_begin(server->config.loop, &info);
    if (server->context == NULL) {
        return error_set(reterr, BATON_ENOMEM,
                         "the server cannot start: is libwebsockets-evlib-uv installed?");
    }
    server->protocols[0] = (struct lws_protocols){.name = "worker",
                                                  .callback = on_lws,
                                                  .per_session_data_size = sizeof(struct peer),
                                                  .rx_buffer_size = 65536,
                                                  .user = server};
    info.protocols = server->protocols;
    info.port = server->config.port;
    info.vhost_name = "worker";
    info.timeout_secs = 10;
    info.keepalive_timeout = 10;
    info.retry_and_idle_policy = &no_pings;
    info.alpn = "http/1.1";
    if (server->tls_cert != NULL) {
        info.options |= LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
        info.ssl_cert_filepath = server->tls_cert;
        info.ssl_private_key_filepath = server->tls_key;
    }
    server->vhost = web_listen(server->context, &info, server->host);
    if (server->vhost == NULL) {
        return error_set(reterr, BATON_EIO,
                         "%s%s port %d: cannot listen there; is the address this machine's, and "
                         "the port free?",
                         server->host != NULL ? "--host " : "every address,",
                         server->host != NULL ? server->host : "", server->config.port);
    }
    return 0;
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
    server->tls_cert = copy(config->tls_cert);
    server->tls_key = copy(config->tls_key);
    rc = uv_timer_init(config->loop, &server->sweeper);
    rc = rc == 0 ? uv_timer_init(config->loop, &server->looker) : rc;
    rc = rc == 0 ? uv_timer_init(config->loop, &server->receiver) : rc;
    server->sweeper.data = server->looker.data = server->receiver.data = server;
    server->has_timers = rc == 0;
    rc = rc == 0 ? 0 : error_set(reterr, BATON_EIO, "cannot start a timer");
    if (rc == 0 && server->tls_cert != NULL) {
        rc = check_certificate(server, reterr);
    }
    rc = rc == 0 ? start(server, reterr) : rc;
    if (rc != 0) {
        server_close(server);
        web_finish_closing(config->loop);
        server_free(server);
        return rc;
    }
    server_flood_watch(server);
    *ret = server;
    return 0;
}

int server_port(const struct server *server)
{
    return lws_get_vhost_listen_port(server->vhost);
}

void server_close(struct server *server)
{
    if (server == NULL) {
        return;
    }
    if (server->context != NULL) {
        lws_context_destroy(server->context);
    }
    server_linger_end(server);
    if (server->has_timers) {
        server->has_timers = false;
        uv_close((uv_handle_t *)&server->sweeper, NULL);
        uv_close((uv_handle_t *)&server->looker, NULL);
        uv_close((uv_handle_t *)&server->receiver, NULL);
    }
}

void server_free(struct server *server)
{
    if (server == NULL) {
        return;
    }
    if (server->context != NULL) {
        lws_context_destroy(
            server->context); /* its second half, once the loop closed its handles */
    }
    free(server->host);
    free(server->token);
    free(server->tls_cert);
    free(server->tls_key);
    free(server);
}

#include "detector/server.h"

#include <libwebsockets.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEADER_MAX = 512,
    HEADERS_MAX = 16384, /* all of a request; more is hung up on before we are asked */
    PING_AFTER_S = 20,
    HANG_UP_AFTER_S = 30,
    CLOSE_WITHIN_S = 5,
    REASON_MAX = 123
};

struct message {
    struct message *next;
    size_t bytes;
    unsigned char room[]; /* LWS_PRE bytes for lws, then the text */
};

/* One connection; lws keeps the pointer to it. */
struct peer {
    struct peer *next, **link; /* in the server's list, while it is a WebSocket */
    struct lws *wsi;
    uint64_t number; /* 0: HTTP */
    struct buffer received;
    struct message *first, **last;
    size_t waiting; /* bytes of the messages */
    int close_code; /* 0: not to be closed */
    bool is_close_sent;
    char close_reason[REASON_MAX + 1];
    struct http_reply reply;
    bool has_reply;
};

struct server {
    struct server_config config;
    struct lws_context *context;
    struct lws_vhost *vhost;
    struct lws_protocols protocols[2];
    char *host, *token, *tls_cert, *tls_key;
    struct peer *peers;
    uint64_t last_number;
    unsigned connections;
    size_t answers; /* bytes of replies that wait */
    uv_timer_t sweeper;
    bool has_sweeper; /* its handle is open */
};

static struct peer *find_peer(const struct server *server, uint64_t number)
{
    struct peer *peer = server->peers;
    while (peer != NULL && peer->number != number) {
        peer = peer->next;
    }
    return peer;
}

/* ---- who may come in ---- */

static bool header(struct lws *wsi, enum lws_token_indexes which, char text[static HEADER_MAX])
{
    int bytes = lws_hdr_copy(wsi, text, HEADER_MAX, which);
    if (bytes < 0) {
        (void)snprintf(text, HEADER_MAX, "(too long)"); /* there, and nothing that is allowed */
        return true;
    }
    return bytes > 0;
}

static bool has_token(const struct server *server, struct lws *wsi)
{
    char shown[HEADER_MAX];
    size_t bytes;

    if (server->token == NULL) {
        return true;
    }
    bytes = strlen(server->token);
    return header(wsi, WSI_TOKEN_HTTP_AUTHORIZATION, shown) &&
           strncasecmp(shown, "Bearer ", 7) == 0 && strlen(shown + 7) == bytes &&
           CRYPTO_memcmp(shown + 7, server->token, bytes) == 0;
}

/* 0 to go on, 1: refused with an answer, -1: hang up. */
static int on_upgrade(const struct server *server, struct lws *wsi, const char *to)
{
    char origin[HEADER_MAX];
    unsigned status = 0;

    if (strcasecmp(to, "websocket") != 0) {
        status = HTTP_STATUS_BAD_REQUEST; /* to HTTP/2, where this check would not be asked again */
    } else if (header(wsi, WSI_TOKEN_ORIGIN, origin)) {
        status = HTTP_STATUS_FORBIDDEN;
    } else if (!has_token(server, wsi)) {
        status = HTTP_STATUS_UNAUTHORIZED;
    }
    if (status == 0) {
        return 0;
    }
    return lws_return_http_status(wsi, status, NULL) < 0 ? -1 : 1;
}

/* ---- HTTP ---- */

/* lws takes a URI apart at semicolons, which camera names contain: puts it together again. */
static bool join_path(struct lws *wsi, enum lws_token_indexes token,
                      char path[static SERVER_PATH_MAX])
{
    size_t used = 0;

    for (int i = 0;; i++) {
        int bytes;
        if (i > 0 && lws_hdr_fragment_length(wsi, token, i) == 0) {
            break;
        }
        if (i > 0 && used < SERVER_PATH_MAX - 1) {
            path[used++] = ';';
        }
        bytes = lws_hdr_copy_fragment(wsi, path + used, (int)(SERVER_PATH_MAX - used), token, i);
        if (bytes < 0) {
            return false;
        }
        used += (size_t)bytes;
    }
    path[used] = '\0';
    return used > 0;
}

static bool join_query(struct lws *wsi, char query[static HEADER_MAX])
{
    size_t used = 0;

    for (int i = 0; lws_hdr_fragment_length(wsi, WSI_TOKEN_HTTP_URI_ARGS, i) > 0; i++) {
        int room = (int)(HEADER_MAX - 2 - used);
        int bytes = room > 1
                        ? lws_hdr_copy_fragment(wsi, query + used, room, WSI_TOKEN_HTTP_URI_ARGS, i)
                        : -1;
        if (bytes < 0) {
            return false;
        }
        used += (size_t)bytes;
        query[used++] = '&';
    }
    query[used > 0 ? used - 1 : 0] = '\0';
    return true;
}

static void refuse(struct http_reply *reply, unsigned status, const char *reason)
{
    reply->status = status;
    reply->type = "application/json";
    reply->etag[0] = '\0';
    buffer_clear(&reply->body);
    buffer_printf(&reply->body, "{\"error\":\"%s\"}\n", reason);
}

static void ask(struct server *server, struct lws *wsi, enum lws_token_indexes token,
                struct http_reply *reply)
{
    char path[SERVER_PATH_MAX];
    char query[HEADER_MAX];
    char etag[HEADER_MAX] = "";
    struct http_question question = {path, query, etag};

    if (!join_path(wsi, token, path)) {
        refuse(reply, HTTP_STATUS_BAD_REQUEST, "path too long");
        return;
    }
    if (strcmp(path, "/healthz") != 0 && strcmp(path, "/readyz") != 0 && !has_token(server, wsi)) {
        refuse(reply, HTTP_STATUS_UNAUTHORIZED, "a bearer token is needed");
        return;
    }
    if (server->answers > SERVER_ANSWERS_MAX) {
        refuse(reply, HTTP_STATUS_SERVICE_UNAVAILABLE, "too many answers wait to be read");
        return;
    }
    if (!join_query(wsi, query)) {
        refuse(reply, HTTP_STATUS_BAD_REQUEST, "query too long");
        return;
    }
    (void)header(wsi, WSI_TOKEN_HTTP_IF_NONE_MATCH, etag);
    server->config.hooks.asked(server->config.hooks.userdata, &question, reply);
    if (reply->body.failed) {
        refuse(reply, HTTP_STATUS_INTERNAL_SERVER_ERROR, "the answer is too large");
    }
}

static int add_header(struct lws *wsi, const char *name, const char *value, unsigned char **at,
                      unsigned char *end)
{
    return lws_add_http_header_by_name(wsi, (const unsigned char *)name,
                                       (const unsigned char *)value, (int)strlen(value), at, end);
}

static int send_headers(struct lws *wsi, const struct http_reply *reply)
{
    unsigned char room[LWS_PRE + 1024];
    unsigned char *start = room + LWS_PRE;
    unsigned char *at = start;
    unsigned char *end = room + sizeof(room) - 1;

    if (lws_add_http_common_headers(wsi, reply->status, reply->type, reply->body.bytes, &at, end) ||
        add_header(wsi, "x-content-type-options:", "nosniff", &at, end) ||
        /* A picture may be kept, but each time be asked for: the camera has newer ones. */
        add_header(wsi, "cache-control:", reply->etag[0] != '\0' ? "no-cache" : "no-store", &at,
                   end) ||
        (reply->etag[0] != '\0' && add_header(wsi, "etag:", reply->etag, &at, end))) {
        return -1;
    }
    return lws_finalize_write_http_header(wsi, start, &at, end) ? -1 : 0;
}

static void drop_reply(struct server *server, struct peer *peer)
{
    if (peer->has_reply) {
        server->answers -= peer->reply.body.bytes;
        buffer_fini(&peer->reply.body);
        peer->has_reply = false;
    }
}

static int on_request(struct server *server, struct lws *wsi, struct peer *peer)
{
    struct http_reply *reply = &peer->reply;
    bool is_head = lws_hdr_total_length(wsi, WSI_TOKEN_HEAD_URI) > 0;

    /* A stream of HTTP/2 (a client may ask for it, even without TLS): its frames would need room in
     * front of each body, and chunks. Only HTTP/1.1 is spoken here. */
    if (lws_get_network_wsi(wsi) != wsi) {
        return -1;
    }
    drop_reply(server, peer);
    *reply = (struct http_reply){.status = HTTP_STATUS_NOT_FOUND};
    buffer_init(&reply->body, SERVER_BODY_MAX);
    if (is_head || lws_hdr_total_length(wsi, WSI_TOKEN_GET_URI) > 0) {
        ask(server, wsi, is_head ? WSI_TOKEN_HEAD_URI : WSI_TOKEN_GET_URI, reply);
    } else {
        refuse(reply, HTTP_STATUS_METHOD_NOT_ALLOWED, "only GET and HEAD are answered");
    }
    peer->has_reply = true;
    server->answers += reply->body.bytes;
    if (send_headers(wsi, reply)) {
        return -1;
    }
    if (is_head || reply->body.bytes == 0) {
        drop_reply(server, peer);
        return lws_http_transaction_completed(wsi) ? -1 : 0;
    }
    lws_callback_on_writable(wsi);
    return 0;
}

static int on_http_writable(struct server *server, struct lws *wsi, struct peer *peer)
{
    struct buffer *body = &peer->reply.body;
    int sent;
    bool is_done;

    if (!peer->has_reply) {
        return 0;
    }
    sent = lws_write(wsi, body->data, body->bytes, LWS_WRITE_HTTP_FINAL);
    is_done = sent >= 0 && (size_t)sent == body->bytes; /* lws keeps what the socket refuses */
    drop_reply(server, peer);
    return !is_done || lws_http_transaction_completed(wsi) ? -1 : 0;
}

/* ---- WebSocket ---- */

static void on_established(struct server *server, struct lws *wsi, struct peer *peer)
{
    *peer = (struct peer){.wsi = wsi, .number = ++server->last_number};
    peer->last = &peer->first;
    buffer_init(&peer->received, server->config.message_max);
    peer->next = server->peers;
    peer->link = &server->peers;
    if (peer->next != NULL) {
        peer->next->link = &peer->next;
    }
    server->peers = peer;
    server->connections++;
    if (server->connections > SERVER_CONNECTIONS_MAX) {
        server_drop(server, peer->number, LWS_CLOSE_STATUS_PROTOCOL_ERR, "too many connections");
        return;
    }
    server->config.hooks.connected(server->config.hooks.userdata, peer->number);
}

/* Takes the first message off the queue, for free(); NULL if there is none. */
static struct message *take_message(struct peer *peer)
{
    struct message *message = peer->first;

    if (message != NULL) {
        peer->first = message->next;
        peer->waiting -= message->bytes;
        if (peer->first == NULL) {
            peer->last = &peer->first;
        }
    }
    return message;
}

static void on_closed(struct server *server, struct peer *peer)
{
    uint64_t number = peer->number;

    if (number == 0) {
        return;
    }
    peer->number = 0;
    *peer->link = peer->next;
    if (peer->next != NULL) {
        peer->next->link = peer->link;
    }
    server->connections--;
    while (peer->first != NULL) {
        free(take_message(peer));
    }
    buffer_fini(&peer->received);
    server->config.hooks.disconnected(server->config.hooks.userdata, number);
}

static int hang_up(struct lws *wsi, enum lws_close_status code, const char *reason)
{
    char text[REASON_MAX + 1]; /* lws copies it, but does not promise to leave it alone */

    (void)snprintf(text, sizeof(text), "%s", reason);
    lws_close_reason(wsi, code, (unsigned char *)text, strlen(text));
    return -1;
}

static int on_received(struct server *server, struct lws *wsi, struct peer *peer, const void *in,
                       size_t bytes)
{
    struct buffer *received = &peer->received;

    if (peer->close_code != 0) {
        return 0;
    }
    if (lws_frame_is_binary(wsi)) {
        return hang_up(wsi, LWS_CLOSE_STATUS_UNACCEPTABLE_OPCODE, "messages are text");
    }
    buffer_put(received, in, bytes);
    if (received->failed) {
        return hang_up(wsi, LWS_CLOSE_STATUS_MESSAGE_TOO_LARGE, "message too large");
    }
    if (!lws_is_final_fragment(wsi) || lws_remaining_packet_payload(wsi) > 0) {
        return 0;
    }
    server->config.hooks.received(server->config.hooks.userdata, peer->number,
                                  received->data != NULL ? (const char *)received->data : "",
                                  received->bytes);
    buffer_clear(received);
    return 0;
}

/* lws drops a socket without a word when "writable" asks for the close, so that the peer would
 * never learn why. From outside lws's callbacks it says the reason and waits for the answer: this
 * runs on a timer that is due at once. */
static void sweep(uv_timer_t *timer)
{
    struct server *server = timer->data;
    struct peer *peer = server->peers;

    while (peer != NULL) {
        if (peer->close_code == 0 || peer->first != NULL || peer->is_close_sent) {
            peer = peer->next;
            continue;
        }
        peer->is_close_sent = true;
        lws_close_reason(peer->wsi, (enum lws_close_status)peer->close_code,
                         (unsigned char *)peer->close_reason, strlen(peer->close_reason));
        lws_set_timeout(peer->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_SYNC);
        peer = server->peers; /* that one may be gone */
    }
}

static int on_writable(struct server *server, struct lws *wsi, struct peer *peer)
{
    struct message *message = take_message(peer);
    int sent;

    if (message == NULL) {
        return 0;
    }
    sent = lws_write(wsi, message->room + LWS_PRE, message->bytes, LWS_WRITE_TEXT);
    free(message);
    if (sent < 0) {
        return -1;
    }
    if (peer->first != NULL) {
        lws_callback_on_writable(wsi);
    } else if (peer->close_code != 0) {
        (void)uv_timer_start(&server->sweeper, sweep, 0, 0);
    } else {
        server->config.hooks.drained(server->config.hooks.userdata, peer->number);
    }
    return 0;
}

bool server_send(struct server *server, uint64_t number, const char *text, size_t bytes)
{
    struct peer *peer = find_peer(server, number);
    struct message *message;

    if (peer == NULL || peer->close_code != 0 ||
        bytes > (size_t)SERVER_BACKLOG_MAX - peer->waiting) {
        return false;
    }
    message = malloc(sizeof(*message) + LWS_PRE + bytes);
    if (message == NULL) {
        return false;
    }
    message->next = NULL;
    message->bytes = bytes;
    memcpy(message->room + LWS_PRE, text, bytes);
    *peer->last = message;
    peer->last = &message->next;
    peer->waiting += bytes;
    lws_callback_on_writable(peer->wsi);
    return true;
}

void server_drop(struct server *server, uint64_t number, int code, const char *reason)
{
    struct peer *peer = find_peer(server, number);

    if (peer != NULL && peer->close_code == 0) {
        peer->close_code = code;
        (void)snprintf(peer->close_reason, sizeof(peer->close_reason), "%s", reason);
        /* However much waits: who does not read it in time is cut off. */
        lws_set_timeout(peer->wsi, PENDING_TIMEOUT_USER_OK, CLOSE_WITHIN_S);
        (void)uv_timer_start(&server->sweeper, sweep, 0, 0);
    }
}

unsigned server_connections(const struct server *server)
{
    return server->connections;
}

/* ---- libwebsockets ---- */

static int on_lws(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                  size_t bytes)
{
    struct peer *peer = user;
    const struct lws_protocols *protocol = wsi != NULL ? lws_get_protocol(wsi) : NULL;
    struct server *server = protocol != NULL ? protocol->user : NULL;

    switch (reason) {
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
        return on_upgrade(server, wsi, in);
    case LWS_CALLBACK_ESTABLISHED:
        if (lws_get_network_wsi(wsi) != wsi) {
            return -1; /* a WebSocket within HTTP/2 */
        }
        on_established(server, wsi, peer);
        return 0;
    case LWS_CALLBACK_RECEIVE:
        return on_received(server, wsi, peer, in, bytes);
    case LWS_CALLBACK_SERVER_WRITEABLE:
        return on_writable(server, wsi, peer);
    case LWS_CALLBACK_CLOSED:
        on_closed(server, peer);
        return 0;
    case LWS_CALLBACK_HTTP:
        return on_request(server, wsi, peer);
    case LWS_CALLBACK_HTTP_WRITEABLE:
        return on_http_writable(server, wsi, peer);
    case LWS_CALLBACK_CLOSED_HTTP:
    case LWS_CALLBACK_HTTP_DROP_PROTOCOL:
        if (peer != NULL && server != NULL) {
            drop_reply(server, peer);
        }
        return 0;
    default:
        return 0;
    }
}

static char *copy(const char *text)
{
    return text != NULL ? strdup(text) : NULL;
}

static int start(struct server *server, struct baton_error *reterr)
{
    /* Reads as: ping after so many seconds of silence, hang up after so many. lws keeps it. */
    static const lws_retry_bo_t patience = {.secs_since_valid_ping = PING_AFTER_S,
                                            .secs_since_valid_hangup = HANG_UP_AFTER_S};
    void *loops[] = {server->config.loop};
    struct lws_context_creation_info info = {
        .port = CONTEXT_PORT_NO_LISTEN,
        .options = LWS_SERVER_OPTION_LIBUV | LWS_SERVER_OPTION_EXPLICIT_VHOSTS |
                   LWS_SERVER_OPTION_UV_NO_SIGSEGV_SIGFPE_SPIN,
        .foreign_loops = loops,
        .fd_limit_per_thread = SERVER_CONNECTIONS_MAX + 64,
        .max_http_header_data = HEADERS_MAX,
        .max_http_header_pool = 64,
        .gid = -1,
        .uid = -1,
    };

    lws_set_log_level(0, NULL);
    server->context = lws_create_context(&info);
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
    info.iface = server->host;
    info.port = server->config.port;
    info.vhost_name = "worker";
    info.timeout_secs = 10;
    info.keepalive_timeout = 10;
    info.retry_and_idle_policy = &patience;
    info.alpn = "http/1.1";
    info.options |= LWS_SERVER_OPTION_FAIL_UPON_UNABLE_TO_BIND;
    if (server->tls_cert != NULL) {
        info.options |= LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
        info.ssl_cert_filepath = server->tls_cert;
        info.ssl_private_key_filepath = server->tls_key;
    }
    server->vhost = lws_create_vhost(server->context, &info);
    if (server->vhost == NULL || lws_get_vhost_listen_port(server->vhost) <= 0) {
        return error_set(reterr, BATON_EIO,
                         "%s port %d: cannot listen there; is the address this machine's, the port "
                         "free, and are certificate and key readable?",
                         server->host != NULL ? server->host : "every address",
                         server->config.port);
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
    server->sweeper.data = server;
    server->has_sweeper = rc == 0;
    rc = rc == 0 ? start(server, reterr) : error_set(reterr, BATON_EIO, "cannot start a timer");
    if (rc != 0) {
        server_close(server);
        (void)uv_run(config->loop, UV_RUN_NOWAIT);
        server_free(server);
        return rc;
    }
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
    if (server->has_sweeper) {
        server->has_sweeper = false;
        uv_close((uv_handle_t *)&server->sweeper, NULL);
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

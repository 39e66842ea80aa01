/* HTTP/1.1 of server.h: a question, and its answer at once, later, or in parts for as long as it is
 * wanted. */
#include "detector/server_int.h"

#include "detector/web_request.h"
#include "web/host.h"

#include <limits.h>
#include <openssl/crypto.h>
#include <string.h>
#include <unistd.h>

bool server_has_token(const struct server *server, struct lws *wsi)
{
    char shown[WEB_HEADER_MAX];
    size_t bytes;

    if (server->token == NULL) {
        return true;
    }
    bytes = strlen(server->token);
    return web_header(wsi, WSI_TOKEN_HTTP_AUTHORIZATION, shown) &&
           strncasecmp(shown, "Bearer ", 7) == 0 && strlen(shown + 7) == bytes &&
           CRYPTO_memcmp(shown + 7, server->token, bytes) == 0;
}

/* A name that a stranger can have has a dot, and so a page cannot be rebound to one without. */
bool server_knows_host(const struct server *server, struct lws *wsi)
{
    char host[WEB_HEADER_MAX], name[WEB_HEADER_MAX], own[HOST_NAME_MAX + 1] = "";

    if (server->token != NULL || !web_header(wsi, WSI_TOKEN_HOST, host)) {
        return true;
    }
    (void)gethostname(own, sizeof(own) - 1);
    return web_host_name(host, name, sizeof(name)) &&
           (strchr(name, '.') == NULL || web_is_address(name) || strcasecmp(name, own) == 0 ||
            web_name_is_ours(server->host != NULL ? server->host : "localhost",
                             server->config.hosts, name));
}

/* A separator that was sent as a code is none, and in no parameter of ours: as libwebsockets does
 * it with an equals sign. */
static void hide(char *text, size_t bytes, char separator)
{
    for (size_t i = 0; i < bytes; i++) {
        text[i] = text[i] == separator ? '_' : text[i];
    }
}

/* lws takes paths apart at semicolons, which camera names contain, and arguments at ampersands:
 * puts them together again. False: no room, or a zero in it. */
static bool join(struct lws *wsi, enum lws_token_indexes token, char separator, char *text,
                 size_t size)
{
    size_t used = 0;

    if ((size_t)lws_hdr_total_length(wsi, token) >= size) {
        return false;
    }
    for (int i = 0;; i++) {
        size_t at = used + (i > 0); /* behind the separator */
        int bytes;

        if (at >= size) {
            return false;
        }
        bytes = lws_hdr_copy_fragment(wsi, text + at, (int)(size - at), token, i);
        if (bytes == -1) {
            break; /* no further one; an empty one is one */
        }
        if (bytes < 0 || memchr(text + at, '\0', (size_t)bytes) != NULL) {
            return false;
        }
        if (i > 0) {
            text[used] = separator;
        }
        if (token == WSI_TOKEN_HTTP_URI_ARGS) {
            hide(text + at, (size_t)bytes, separator);
        }
        used = at + (size_t)bytes;
    }
    text[used] = '\0';
    return true;
}

static void refuse(struct http_reply *reply, unsigned status, const char *reason)
{
    reply->kind = REPLY_NOW;
    reply->status = status;
    reply->type = "application/json";
    reply->etag[0] = '\0';
    buffer_clear(&reply->body);
    buffer_printf(&reply->body, "{\"error\":\"%s\"}\n", reason);
}

static void ask(struct server *server, struct lws *wsi, enum lws_token_indexes token,
                struct peer *peer)
{
    struct http_reply *reply = &peer->reply;
    char path[SERVER_PATH_MAX];
    char query[WEB_HEADER_MAX];
    char etag[WEB_HEADER_MAX] = "";
    struct http_question question = {path, query, etag, peer->ticket};
    bool is_probe;

    if (!join(wsi, token, ';', path, sizeof(path)) || path[0] == '\0') {
        refuse(reply, HTTP_STATUS_BAD_REQUEST, "the path is too long, or has a zero in it");
        return;
    }
    is_probe = strcmp(path, "/healthz") == 0 || strcmp(path, "/readyz") == 0;
    if (!is_probe && !server_has_token(server, wsi)) {
        refuse(reply, HTTP_STATUS_UNAUTHORIZED, "a bearer token is needed");
        return;
    }
    if (!is_probe && !server_knows_host(server, wsi)) {
        refuse(reply, HTTP_STATUS_FORBIDDEN,
               "this worker does not know that it is that host: ask for its address, or name the "
               "host by --http-host, or use a token");
        return;
    }
    if (server->answers > SERVER_ANSWERS_MAX) {
        refuse(reply, HTTP_STATUS_SERVICE_UNAVAILABLE, "too many answers wait to be read");
        reply->retry_after_s = 1;
        return;
    }
    if (!join(wsi, WSI_TOKEN_HTTP_URI_ARGS, '&', query, sizeof(query))) {
        refuse(reply, HTTP_STATUS_BAD_REQUEST, "query too long");
        return;
    }
    (void)web_header(wsi, WSI_TOKEN_HTTP_IF_NONE_MATCH, etag);
    server->config.hooks.asked(server->config.hooks.userdata, &question, reply);
}

static int add_header(struct lws *wsi, const char *name, const char *value, unsigned char **at,
                      unsigned char *end)
{
    return lws_add_http_header_by_name(wsi, (const unsigned char *)name,
                                       (const unsigned char *)value, (int)strlen(value), at, end);
}

/* Status, type and length. The length of a 304 would be that of the picture, which is not known. */
static int add_first_headers(struct lws *wsi, const struct http_reply *reply, unsigned char **at,
                             unsigned char *end)
{
    lws_filepos_t bytes =
        reply->kind == REPLY_PARTS ? LWS_ILLEGAL_HTTP_CONTENT_LEN : reply->body.bytes;

    if (reply->status == HTTP_STATUS_NOT_MODIFIED) {
        return lws_add_http_header_status(wsi, reply->status, at, end);
    }
    return lws_add_http_common_headers(wsi, reply->status, reply->type, bytes, at, end);
}

static int send_headers(struct lws *wsi, const struct http_reply *reply)
{
    unsigned char room[LWS_PRE + 1024];
    unsigned char *start = room + LWS_PRE;
    unsigned char *at = start;
    unsigned char *end = room + sizeof(room) - 1;
    bool has_tag = reply->etag[0] != '\0';
    char seconds[16];

    (void)snprintf(seconds, sizeof(seconds), "%u", reply->retry_after_s);
    if (add_first_headers(wsi, reply, &at, end) ||
        add_header(wsi, "x-content-type-options:", "nosniff", &at, end) ||
        /* A picture may be kept, but each time be asked for: the camera has newer ones. */
        add_header(wsi, "cache-control:", has_tag ? "no-cache" : "no-store", &at, end) ||
        (reply->status == HTTP_STATUS_UNAUTHORIZED &&
         add_header(wsi, "www-authenticate:", "Bearer", &at, end)) ||
        (reply->retry_after_s > 0 && add_header(wsi, "retry-after:", seconds, &at, end)) ||
        (has_tag && add_header(wsi, "etag:", reply->etag, &at, end))) {
        return -1;
    }
    return lws_finalize_write_http_header(wsi, start, &at, end) ? -1 : 0;
}

/* Nothing of the answer is left, and its ticket is worth nothing. */
static void drop_reply(struct server *server, struct peer *peer)
{
    uint64_t ticket = peer->ticket;

    if (peer->phase == HTTP_IDLE) {
        return;
    }
    if (peer->phase != HTTP_WAITING) {
        server->answers -= peer->reply.body.bytes;
    }
    peer->phase = HTTP_IDLE;
    peer->ticket = 0;
    buffer_fini(&peer->reply.body);
    server_unlink(peer);
    if (peer->reply.kind == REPLY_PARTS) {
        server->config.hooks.left(server->config.hooks.userdata, ticket);
    }
}

/* All was said. What the socket has no room for yet goes first; then who wanted nothing more hangs
 * up, or is not waited for long. */
static int complete(struct lws *wsi, const struct peer *peer)
{
    if (peer->is_last && !lws_partial_buffered(wsi)) {
        return -1;
    }
    return lws_http_transaction_completed(wsi) ? -1 : 0;
}

/* The answer is whole, or its parts begin. */
static int begin(struct server *server, struct lws *wsi, struct peer *peer)
{
    struct http_reply *reply = &peer->reply;

    if (send_headers(wsi, reply)) {
        return -1;
    }
    if (peer->is_head || (reply->kind != REPLY_PARTS && reply->body.bytes == 0)) {
        drop_reply(server, peer);
        return complete(wsi, peer);
    }
    peer->phase = reply->kind == REPLY_PARTS ? HTTP_PARTS : HTTP_BODY;
    lws_callback_on_writable(wsi);
    return 0;
}

/* The body is known: from now on it counts. */
static void close_body(struct server *server, struct http_reply *reply)
{
    if (reply->body.failed) {
        refuse(reply, HTTP_STATUS_INTERNAL_SERVER_ERROR, "the answer is too large");
    }
    server->answers += reply->body.bytes;
}

static bool is_question(struct lws *wsi)
{
    return lws_hdr_total_length(wsi, WSI_TOKEN_GET_URI) > 0 ||
           lws_hdr_total_length(wsi, WSI_TOKEN_HEAD_URI) > 0;
}

int server_on_request(struct server *server, struct lws *wsi, struct peer *peer, const char *fault)
{
    struct http_reply *reply = &peer->reply;

    /* A stream of HTTP/2 (a client may ask for it, even without TLS): its frames would need room in
     * front of each body, and chunks. Only HTTP/1.1 is spoken here. */
    if (lws_get_network_wsi(wsi) != wsi) {
        return -1;
    }
    /* Where a body may follow, no further request is looked for: it could be part of that. */
    if (!is_question(wsi)) {
        (void)server_refuse(wsi, HTTP_STATUS_METHOD_NOT_ALLOWED, ONLY_GET_AND_HEAD);
        return -1;
    }
    fault = fault != NULL ? fault : web_request_fault(wsi);
    if (fault != NULL) {
        (void)server_refuse(wsi, HTTP_STATUS_BAD_REQUEST, fault);
        return -1;
    }
    drop_reply(server, peer);
    peer->wsi = wsi;
    peer->ticket = ++server->last_number;
    peer->is_head = lws_hdr_total_length(wsi, WSI_TOKEN_HEAD_URI) > 0;
    peer->is_last = web_request_is_last(wsi);
    *reply = (struct http_reply){.status = HTTP_STATUS_NOT_FOUND};
    buffer_init(&reply->body, SERVER_BODY_MAX);
    peer->phase = HTTP_WAITING;
    server_link(&server->askers, peer);
    ask(server, wsi, peer->is_head ? WSI_TOKEN_HEAD_URI : WSI_TOKEN_GET_URI, peer);
    if (reply->kind == REPLY_LATER) {
        lws_set_timeout(wsi, PENDING_TIMEOUT_HTTP_CONTENT, ANSWER_WITHIN_S);
        return 0;
    }
    peer->phase = HTTP_HEAD;
    close_body(server, reply);
    return begin(server, wsi, peer);
}

static int write_body(struct server *server, struct lws *wsi, struct peer *peer)
{
    struct buffer *body = &peer->reply.body;
    int sent = lws_write(wsi, body->data, body->bytes, LWS_WRITE_HTTP_FINAL);
    bool is_done = sent >= 0 && (size_t)sent == body->bytes; /* lws keeps what the socket refuses */

    drop_reply(server, peer);
    lws_set_timeout(wsi, PENDING_TIMEOUT_HTTP_CONTENT, READ_WITHIN_S);
    return is_done ? complete(wsi, peer) : -1;
}

/* "Writable" is told again only once the peer has read the part: so nothing piles up. */
static int write_part(struct server *server, struct lws *wsi, struct peer *peer)
{
    struct buffer *body = &peer->reply.body;
    int sent = lws_write(wsi, body->data, body->bytes, LWS_WRITE_HTTP);
    bool is_done = sent >= 0 && (size_t)sent == body->bytes;

    server->answers -= body->bytes;
    buffer_clear(body);
    peer->phase = HTTP_PARTS;
    lws_set_timeout(wsi, PENDING_TIMEOUT_HTTP_CONTENT, READ_WITHIN_S);
    lws_callback_on_writable(wsi);
    return is_done ? 0 : -1;
}

int server_on_http_writable(struct server *server, struct lws *wsi, struct peer *peer)
{
    switch (peer->phase) {
    case HTTP_HEAD:
        return begin(server, wsi, peer);
    case HTTP_BODY:
        return write_body(server, wsi, peer);
    case HTTP_PARTS:
        lws_set_timeout(wsi, NO_PENDING_TIMEOUT, 0);
        server->config.hooks.wanted(server->config.hooks.userdata, peer->ticket);
        return 0;
    case HTTP_PART:
        return write_part(server, wsi, peer);
    case HTTP_END:
        return -1;
    case HTTP_IDLE:
    case HTTP_WAITING:
    default:
        return 0;
    }
}

void server_on_http_closed(struct server *server, struct peer *peer)
{
    drop_reply(server, peer);
}

static struct peer *find_asker(const struct server *server, uint64_t ticket)
{
    struct peer *peer = server->askers;

    while (peer != NULL && peer->ticket != ticket) {
        peer = peer->next;
    }
    return peer != NULL && (peer->phase == HTTP_WAITING || peer->phase == HTTP_PARTS) ? peer : NULL;
}

struct http_reply *server_reply(struct server *server, uint64_t ticket)
{
    struct peer *peer = find_asker(server, ticket);
    return peer != NULL ? &peer->reply : NULL;
}

void server_answer(struct server *server, uint64_t ticket)
{
    struct peer *peer = find_asker(server, ticket);

    if (peer == NULL) {
        return;
    }
    if (peer->phase == HTTP_WAITING) {
        peer->reply.kind = REPLY_NOW;
        peer->phase = HTTP_HEAD;
    } else if (peer->reply.body.failed) {
        buffer_clear(&peer->reply.body);
        peer->phase = HTTP_END; /* its head was sent long ago: there is no other way to say it */
    } else {
        peer->phase = HTTP_PART;
    }
    close_body(server, &peer->reply);
    lws_callback_on_writable(peer->wsi);
}

void server_finish(struct server *server, uint64_t ticket)
{
    struct peer *peer = server->askers;

    while (peer != NULL && peer->ticket != ticket) {
        peer = peer->next;
    }
    if (peer != NULL && (peer->phase == HTTP_PARTS || peer->phase == HTTP_PART)) {
        peer->phase = HTTP_END; /* what was written and not read yet still goes first */
        lws_callback_on_writable(peer->wsi);
    }
}

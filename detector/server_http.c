/* HTTP/1.1 of server.h: a question, and its answer at once, later, or in parts for as long as it is
 * wanted. */
#include "detector/server_int.h"

#include "web/host.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Against DNS rebinding: a stranger's name always has a dot, so a name without one is trusted. */
static bool knows_host(const struct server *server, const struct web_request *request)
{
    const char *host = web_header(&request->head, "host");
    char name[QUERY_MAX], own[HOST_NAME_MAX + 1] = "";

    if (server->token != NULL || host == NULL || host[0] == '\0') {
        return true;
    }
    (void)gethostname(own, sizeof(own) - 1);
    return web_host_name(host, name, sizeof(name)) &&
           (strchr(name, '.') == NULL || web_is_address(name) || strcasecmp(name, own) == 0 ||
            web_name_is_ours(server->host != NULL ? server->host : "localhost",
                             server->config.hosts, name));
}

/* Decodes the query. A separator that was sent percent-encoded becomes '_', which is in no
 * parameter of ours. Returns NULL, or the reason of a refusal. */
static const char *decode_query(const char *query, char ret[static QUERY_MAX])
{
    size_t used = 0;

    while (*query != '\0') {
        bool is_code = *query == '%';
        int byte = web_decode(&query);
        if (byte < ' ' || byte == 0x7f) {
            return "the query has a malformed code or a control character in it";
        }
        if (used + 1 == QUERY_MAX) {
            return "the query is too long";
        }
        ret[used++] = is_code && (byte == '&' || byte == '=') ? '_' : (char)byte;
    }
    ret[used] = '\0';
    return NULL;
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

static void ask(struct server *server, struct asker *asker, const char *path, const char *query)
{
    const struct web_request *request = web_exchange_request(asker->exchange);
    const char *etag = web_header(&request->head, "if-none-match");
    struct http_question question = {path, query, etag != NULL ? etag : "", asker->ticket};
    struct http_reply *reply = &asker->reply;
    bool is_probe = strcmp(path, "/healthz") == 0 || strcmp(path, "/readyz") == 0;

    if (!is_probe && !server_has_token(server, request)) {
        refuse(reply, 401, "a bearer token is needed");
    } else if (!is_probe && !knows_host(server, request)) {
        refuse(reply, 403,
               "this worker does not know that it is that host: ask for its address, or name the "
               "host by --http-host, or use a token");
    } else if (web_server_backlog(server->web) > SERVER_ANSWERS_MAX) {
        refuse(reply, 503, "too many answers wait to be read");
        reply->retry_after_s = 1;
    } else {
        server->config.hooks.asked(server->config.hooks.userdata, &question, reply);
    }
}

/* ---- Answers ---- */

static void put_headers(const struct http_reply *reply, char *ret, size_t bytes)
{
    bool has_tag = reply->etag[0] != '\0';
    char retry[48] = "";

    if (reply->retry_after_s > 0) {
        (void)snprintf(retry, sizeof(retry), "retry-after: %u\r\n", reply->retry_after_s);
    }
    /* A cache may keep a picture but must ask again each time: the camera has newer ones. */
    (void)snprintf(ret, bytes, "cache-control: %s\r\n%s%s%s%s%s", has_tag ? "no-cache" : "no-store",
                   reply->status == 401 ? "www-authenticate: Bearer\r\n" : "", retry,
                   has_tag ? "etag: " : "", reply->etag, has_tag ? "\r\n" : "");
}

/* The answer is over, and its ticket is invalid. */
static void end_asker(struct server *server, struct asker *asker)
{
    *asker->link = asker->next;
    if (asker->next != NULL) {
        asker->next->link = asker->link;
    }
    if (asker->reply.kind == REPLY_PARTS) {
        server->config.hooks.left(server->config.hooks.userdata, asker->ticket);
    }
    buffer_fini(&asker->reply.body);
    free(asker);
}

/* Sends the answer, or its head if parts follow. A 304 has no length: it would be the picture's,
 * which is not known. */
static void begin(struct server *server, struct asker *asker)
{
    struct http_reply *reply = &asker->reply;
    struct web_exchange *exchange = asker->exchange;
    char headers[256];
    struct web_answer answer = {.status = reply->status, .headers = headers};

    if (reply->body.failed) {
        refuse(reply, 500, "the answer is too large");
        answer.status = reply->status;
    }
    put_headers(reply, headers, sizeof(headers));
    answer.type = reply->status != 304 ? reply->type : NULL;
    if (reply->kind == REPLY_PARTS && !web_exchange_request(exchange)->is_head) {
        asker->has_begun = true;
        web_begin(exchange, &answer);
        return;
    }
    answer.body = reply->body.data;
    answer.bytes = reply->body.bytes;
    if (reply->kind == REPLY_PARTS) {
        web_begin(exchange, &answer); /* HEAD: this is the whole answer */
    } else {
        web_answer(exchange, &answer);
    }
    end_asker(server, asker);
}

void server_http_begin(struct server *server, struct web_exchange *exchange)
{
    const struct web_request *request = web_exchange_request(exchange);
    char path[WEB_PATH_MAX], query[QUERY_MAX];
    const char *fault = web_path(request->target, path);
    struct asker *asker;

    fault = fault != NULL ? fault : decode_query(web_query(request->target), query);
    asker = fault == NULL ? calloc(1, sizeof(*asker)) : NULL;
    if (asker == NULL) {
        web_refuse(exchange, fault != NULL ? 400 : 503, fault != NULL ? fault : "out of memory");
        return;
    }
    asker->exchange = exchange;
    asker->ticket = ++server->last_number;
    asker->reply = (struct http_reply){.status = 404};
    buffer_init(&asker->reply.body, SERVER_BODY_MAX);
    asker->next = server->askers;
    asker->link = &server->askers;
    if (asker->next != NULL) {
        asker->next->link = &asker->next;
    }
    server->askers = asker;
    web_exchange_set(exchange, asker);
    ask(server, asker, path, query);
    if (asker->reply.kind == REPLY_LATER) {
        asker->is_ready = true;
    } else {
        begin(server, asker);
    }
}

void server_http_drained(struct server *server, struct web_exchange *exchange)
{
    struct asker *asker = web_exchange_get(exchange);

    if (asker != NULL && !asker->is_ready) {
        asker->is_ready = true;
        server->config.hooks.wanted(server->config.hooks.userdata, asker->ticket);
    }
}

void server_http_gone(struct server *server, struct web_exchange *exchange)
{
    struct asker *asker = web_exchange_get(exchange);

    if (asker != NULL) {
        end_asker(server, asker);
    }
}

static struct asker *find_asker(const struct server *server, uint64_t ticket)
{
    struct asker *asker = server->askers;

    while (asker != NULL && asker->ticket != ticket) {
        asker = asker->next;
    }
    return asker;
}

struct http_reply *server_reply(struct server *server, uint64_t ticket)
{
    struct asker *asker = find_asker(server, ticket);

    return asker != NULL && asker->is_ready ? &asker->reply : NULL;
}

static void finish(struct server *server, struct asker *asker)
{
    struct web_exchange *exchange = asker->exchange;

    end_asker(server, asker);
    web_finish(exchange);
}

void server_answer(struct server *server, uint64_t ticket)
{
    struct asker *asker = find_asker(server, ticket);
    struct buffer *body = asker != NULL ? &asker->reply.body : NULL;

    if (asker == NULL || !asker->is_ready) {
        return;
    }
    asker->is_ready = false;
    if (!asker->has_begun) {
        asker->reply.kind = REPLY_NOW;
        begin(server, asker);
    } else if (body->failed) {
        finish(server, asker); /* the head with its status was sent already */
    } else {
        web_part(asker->exchange, body->data, body->bytes);
        buffer_clear(body);
    }
}

void server_finish(struct server *server, uint64_t ticket)
{
    struct asker *asker = find_asker(server, ticket);

    if (asker != NULL && asker->has_begun) {
        finish(server, asker);
    }
}

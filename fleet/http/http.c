#include "fleet/http/api.h"

#include "base/host.h"
#include "base/json_text.h"
#include "fleet/http/events.h"
#include "fleet/http/image.h"
#include "fleet/http/inside.h"

#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

enum {
    CONNECTIONS_MAX = 1024,
    HEAD_MAX = 16384,
    HEAD_WITHIN_S = 10,   /* for a whole request, body and all */
    READ_WITHIN_S = 30,   /* for taking an answer */
    ANSWER_WITHIN_S = 30, /* for a write; then 503 */
    ENDING_MS = 5,
};

/* ---- One request ----------------------------------------------------------------------------- */

static void refuse_path(struct call *call, const char *methods)
{
    const char *path = call_request(call)->target;
    struct web_answer answer = {.status = 405, .type = "application/json"};
    char headers[ROUTE_METHODS_MAX + 64], body[ROUTE_METHODS_MAX + 64];

    if (*methods == '\0') {
        call_refuse(call, 404, NULL, "%.*s: there is no such path; /openapi.json has them",
                    (int)strcspn(path, "?"), path);
        return;
    }
    (void)snprintf(headers, sizeof(headers), "cache-control: no-store\r\nallow: %s\r\n", methods);
    (void)snprintf(body, sizeof(body), "{\"error\":\"this path has the methods %s\"}", methods);
    answer.headers = headers;
    answer.body = body;
    answer.bytes = strlen(body);
    call->http->counters.by_class[4]++;
    web_exchange_set(call->exchange, NULL);
    web_answer(call->exchange, &answer);
    call_end(call);
}

/* Conditions are those of a thing's own path, which ends with its id. */
static bool ignores_condition(const struct route *route, const struct web_request *request)
{
    const char *last = strrchr(route->pattern, '/');

    return route->right == RIGHT_CHANGE && strcmp(last, "/{id}") != 0 &&
           (web_header(&request->head, "if-match") != NULL ||
            web_header(&request->head, "if-none-match") != NULL);
}

/* Whether the handler may have the call. */
static bool admit(struct call *call, const char *methods)
{
    const struct web_request *request = call_request(call);
    struct fleet_http *http = call->http;
    const char *reason;
    unsigned status;

    if (call->route == NULL) {
        refuse_path(call, methods);
        return false;
    }
    status = gate_check(&http->gate, request, call->route->right, &reason);
    if (status != 0) {
        call_refuse(call, status, NULL, "%s", reason);
        return false;
    }
    if (call->route->body_max == 0 && request->body.bytes > 0) {
        call_refuse(call, 400, NULL, "this request has no body");
        return false;
    }
    if (ignores_condition(call->route, request)) {
        call_refuse(call, 400, NULL, "If-Match, If-None-Match: this request has no conditions");
        return false;
    }
    if (call->route->right != RIGHT_NONE && !http->has_begun) {
        call_refuse(call, 503, NULL, "the state of the fleet is being loaded");
        return false;
    }
    if (web_server_backlog(http->web) > HTTP_ANSWERS_MAX) {
        call_refuse(call, 503, NULL, "too many answers wait to be read");
        return false;
    }
    return true;
}

static void begin(struct fleet_http *http, struct web_exchange *exchange, struct call *call)
{
    const struct web_request *request = web_exchange_request(exchange);
    char methods[ROUTE_METHODS_MAX];

    call->http = http;
    call->exchange = exchange;
    call->begun = clock_now();
    web_exchange_set(exchange, call);
    call->route = route_find(fleet_routes, request->method, request->target, call->id, methods);
    if (admit(call, methods)) {
        call->route->handle(call);
    }
}

static void on_request(void *userdata, struct web_exchange *exchange)
{
    struct fleet_http *http = userdata;
    const struct web_request *request = web_exchange_request(exchange);
    char path[WEB_PATH_MAX];
    const char *fault = request->is_upgrade ? "this server upgrades to no other protocol"
                                            : web_path(request->target, path);
    struct call *call;

    if (fault != NULL) {
        http->counters.by_class[4]++;
        web_refuse(exchange, 400, fault);
        return;
    }
    if (!rates_take(&http->rates, web_exchange_address(exchange), clock_now())) {
        http->counters.too_many++;
        http->counters.by_class[4]++;
        web_refuse(exchange, 429, "too many requests of this address");
        return;
    }
    call = calloc(1, sizeof(*call));
    if (call == NULL) {
        web_refuse(exchange, 503, "out of memory");
        return;
    }
    begin(http, exchange, call);
}

/* A body that will be refused is not read: its sender may be a stranger. */
static size_t body_limit(void *userdata, const struct web_request *request)
{
    const struct fleet_http *http = userdata;
    char id[ROUTE_ID_MAX], methods[ROUTE_METHODS_MAX];
    const struct route *route =
        route_find(fleet_routes, request->method, request->target, id, methods);
    const char *reason;

    return route == NULL || gate_check(&http->gate, request, route->right, &reason) != 0
               ? HTTP_BODY_MAX
               : route->body_max;
}

static void on_drain(void *userdata, struct web_exchange *exchange)
{
    struct call *call = web_exchange_get(exchange);

    (void)userdata;
    if (call != NULL && call->drained != NULL) {
        call->drained(call);
    }
}

static void on_gone(void *userdata, struct web_exchange *exchange)
{
    struct call *call = web_exchange_get(exchange);

    (void)userdata;
    web_exchange_set(exchange, NULL);
    if (call != NULL) {
        call->exchange = NULL;
        if (call->gone != NULL) {
            call->gone(call);
        }
    }
}

/* ---- Its life -------------------------------------------------------------------------------- */

static void on_change(struct fleet_observer *observer, const struct fleet_state_event *event)
{
    struct fleet_http *http =
        (struct fleet_http *)((char *)observer - offsetof(struct fleet_http, observer));

    if (event->change == FLEET_CHANGED_OBJECT) {
        http->changes[event->kind]++;
        fleet_http_event(
            http, "object-changed",
            json_pack("{s:s, s:s}", "kind", fleet_kind_name(event->kind), "id", event->id));
    }
}

static int check(const struct fleet_http_config *config, struct baton_error *reterr)
{
    bool has_token = config->read_token != NULL || config->change_token != NULL;

    if (has_token || config->is_insecure || host_is_loopback(config->host)) {
        return BATON_OK;
    }
    return error_set(reterr, BATON_EAUTH,
                     "--http %s: off the loopback interface a token is needed; give "
                     "--read-token-file or --change-token-file, or --insecure",
                     config->host != NULL ? config->host : "*");
}

static int listen_at(struct fleet_http *http, struct baton_error *reterr)
{
    const struct fleet_http_config *config = &http->config;
    struct web_config web = {.loop = config->loop,
                             .logger = config->logger,
                             .host = config->host,
                             .port = config->port,
                             .tls_cert = config->tls_cert,
                             .tls_key = config->tls_key,
                             .connections_max = CONNECTIONS_MAX,
                             .head_within_s = HEAD_WITHIN_S,
                             .answer_within_s = ANSWER_WITHIN_S,
                             .read_within_s = READ_WITHIN_S,
                             .head_max = HEAD_MAX,
                             .body_max = HTTP_APPLY_MAX,
                             .bodies_max = (size_t)2 * HTTP_APPLY_MAX,
                             .answer_max = HTTP_ANSWER_MAX,
                             .callbacks = {.on_request = on_request,
                                           .body_limit = body_limit,
                                           .on_drain = on_drain,
                                           .on_gone = on_gone},
                             .userdata = http};
    const char *host = config->host != NULL ? config->host : "*";
    int code = web_server_open(&http->web, &web, reterr);

    return code == BATON_EIO ? error_wrap(reterr, "--http %s:%d", host, config->port) : code;
}

static int start(struct fleet_http *http, struct baton_error *reterr)
{
    uint64_t secret;

    if (RAND_bytes((unsigned char *)&secret, sizeof(secret)) != 1 ||
        RAND_bytes((unsigned char *)&http->run, sizeof(http->run)) != 1) {
        return error_set(reterr, BATON_EIO, "the system has no random numbers");
    }
    rates_init(&http->rates, http->config.requests_per_s, secret);
    http->events = events_new(http);
    http->images = images_new(http);
    if (http->events == NULL || http->images == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    return listen_at(http, reterr);
}

int fleet_http_open(struct fleet_http **ret, const struct fleet_http_config *config,
                    struct baton_error *reterr)
{
    struct fleet_http *http;
    int code = check(config, reterr);

    if (code) {
        return code;
    }
    http = calloc(1, sizeof(*http));
    if (http == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    http->config = *config;
    http->parts = config->parts;
    http->gate = (struct gate){config->host != NULL ? config->host : "localhost", config->hosts,
                               config->read_token, config->change_token};
    http->started = clock_now();
    code = start(http, reterr);
    if (code) {
        events_free(http->events);
        images_free(http->images);
        free(http);
        return code;
    }
    events_begin(http->events);
    *ret = http;
    return BATON_OK;
}

void fleet_http_begin(struct fleet_http *http, const struct fleet_http_parts *parts)
{
    http->parts = *parts;
    http->has_begun = true;
    http->observer.on_change = on_change;
    fleet_state_observe(parts->state, &http->observer);
}

int fleet_http_port(const struct fleet_http *http)
{
    return web_server_port(http->web);
}

void fleet_http_event(struct fleet_http *http, const char *name, json_t *fields)
{
    char *text = json_text(fields, JSON_COMPACT);

    if (text != NULL) {
        events_add(http->events, name, text, strlen(text));
    }
    free(text);
    json_decref(fields);
}

void fleet_http_detection(struct fleet_http *http, const char *line, size_t bytes)
{
    events_add(http->events, "detection", line, bytes);
}

void fleet_http_close(struct fleet_http *http)
{
    if (http != NULL && !http->is_closing) {
        http->is_closing = true;
        if (http->has_begun) {
            fleet_state_ignore(http->parts.state, &http->observer);
        }
        web_server_close(http->web);
        images_close(http->images);
        events_close(http->events);
    }
}

static void on_freed(uv_handle_t *handle)
{
    struct fleet_http *http = handle->data;

    web_server_free(http->web);
    images_free(http->images);
    events_free(http->events);
    free(http);
}

/* The connections, the requests to workers and the thread that reads a file have ended. */
static void on_ending(uv_timer_t *timer)
{
    const struct fleet_http *http = timer->data;

    if (web_server_connections(http->web) == 0 && !http->is_applying &&
        images_are_closed(http->images)) {
        uv_close((uv_handle_t *)timer, on_freed);
    }
}

void fleet_http_free(struct fleet_http *http)
{
    if (http != NULL) {
        (void)uv_timer_init(http->config.loop, &http->ending); /* cannot fail */
        http->ending.data = http;
        (void)uv_timer_start(&http->ending, on_ending, 0, ENDING_MS);
    }
}

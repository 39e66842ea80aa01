/* The HTTP requests of service.h: who may ask, and the pages that are texts. */
#include "detector/service_int.h"

#include "base/error.h"
#include "base/json_text.h"
#include "web/exposition.h"
#include "web/host.h"
#include "web/upgrade.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ANSWERS_MAX = 64 << 20, /* bytes of answers that wait, all together; then 503 */
    BODY_MAX = 4 << 20,     /* bytes of a page */
};

#define FRESH "cache-control: no-store\r\n"

static void answer_text(struct web_exchange *exchange, unsigned status, const char *type,
                        const char *text)
{
    web_answer(
        exchange,
        &(struct web_answer){
            .status = status, .type = type, .headers = FRESH, .body = text, .bytes = strlen(text)});
}

/* ---- /status --------------------------------------------------------------------------------- */

/* Writes {"cameras": …} with names and states only; URLs are secrets. */
static json_t *cameras_json(const struct service *service)
{
    const struct worker *worker = &service->worker;
    json_t *list = json_array();

    for (size_t i = 0; i < worker->subscription_count; i++) {
        struct subscription *subscription = worker->subscriptions[i];
        const char *stage = stage_name(worker_stage(worker, subscription->identifier));
        struct session_id session = worker_session(worker, subscription->identifier);
        json_t *camera = json_pack(
            "{s:s, s:b, s:I, s:s, s:o, s:s?}", "subscriptionIdentifier", subscription->identifier,
            "online", (int)subscription->is_online, "modelId", (json_int_t)subscription->model_id,
            "modelName", subscription->model_name, "sessionId",
            session.is_set ? json_integer(session.id) : json_null(), "progressionStage", stage);
        if (camera != NULL && service->config.describe != NULL) {
            service->config.describe(service->config.userdata, subscription, camera);
        }
        (void)json_array_append_new(list, camera);
    }
    return list;
}

static json_t *usage_json(const struct service *service)
{
    const struct usage *usage = &service->worker.usage;

    return json_pack("{s:f, s:f, s:f, s:f, s:s, s:f, s:I, s:I}", "cpu", usage->cpu, "memory",
                     usage->memory, "gpu", usage->gpu, "gpuMemory", usage->gpu_memory, "of",
                     usage_source(&service->meter), "cpus", usage_cpus(&service->meter),
                     "memoryBytes", (json_int_t)usage_memory_limit(&service->meter), "gpus",
                     (json_int_t)service->meter.gpus.count);
}

static json_t *counters_json(const struct worker *worker)
{
    json_t *ret = json_object();

#define COUNTER(field, name, help)                                                                 \
    (void)json_object_set_new(ret, name, json_integer((json_int_t)worker->counters.field));
    WORKER_COUNTERS(COUNTER)
#undef COUNTER
    (void)json_object_set_new(ret, "detectionsQueued",
                              json_integer((json_int_t)worker_queued(worker)));
    return ret;
}

static void answer_status(const struct service *service, struct web_exchange *exchange)
{
    json_t *status =
        json_pack("{s:b, s:b, s:I, s:o, s:o, s:o}", "ready", (int)(service->drain == DRAIN_NOT),
                  "hasBackend", (int)(service->worker.owner != 0), "connections",
                  (json_int_t)service->connections, "usage", usage_json(service), "counters",
                  counters_json(&service->worker), "cameras", cameras_json(service));
    char *text = status != NULL ? json_text(status, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) : NULL;

    if (text == NULL) {
        web_refuse(exchange, 503, "out of memory");
    } else {
        answer_text(exchange, 200, "application/json", text);
    }
    free(text);
    json_decref(status);
}

/* ---- /metrics -------------------------------------------------------------------------------- */

static size_t count_online(const struct worker *worker)
{
    size_t online = 0;

    for (size_t i = 0; i < worker->subscription_count; i++) {
        online += worker->subscriptions[i]->is_online;
    }
    return online;
}

static void put_metrics(const struct service *service, struct buffer *body)
{
    const struct worker *worker = &service->worker;
    const struct {
        const char *name, *type, *help;
        double value;
    } rows[] = {
        {"subscriptions", "gauge", "Subscriptions that run.", (double)worker->subscription_count},
        {"subscriptions_online", "gauge", "Subscriptions whose frames arrive.",
         (double)count_online(worker)},
        {"backend_connected", "gauge", "1 while a backend owns this worker.", worker->owner != 0},
        {"connections", "gauge", "WebSocket connections.", service->connections},
        {"cpu_percent", "gauge", "CPU of what this process may use.", worker->usage.cpu},
        {"memory_percent", "gauge", "Memory of what this process may use.", worker->usage.memory},
#define COUNTER(field, name, help)                                                                 \
    {#field "_total", "counter", help, (double)worker->counters.field},
        WORKER_COUNTERS(COUNTER)
#undef COUNTER
            {"detections_queued", "gauge", "Detections that wait for a backend.",
             (double)worker_queued(worker)},
        {"images_served_total", "counter", "Images sent.", (double)service->images_served},
        {"stream_viewers", "gauge", "Who looks at a camera's stream.", service->streams},
        {"stream_parts_served_total", "counter", "Images sent in streams.",
         (double)service->parts_served},
        {"images_encoded_total", "counter", "JPEGs made.", (double)service->images.counters.made},
        {"images_refused_total", "counter", "JPEGs not made, because too many waited.",
         (double)service->images.counters.refused},
        {"images_waiting", "gauge", "JPEGs that wait or are under way.",
         service->images.counters.waiting},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char name[64];
        (void)snprintf(name, sizeof(name), "baton_detector_%s", rows[i].name);
        exposition_single(body, name, rows[i].type, rows[i].help, rows[i].value);
    }
    if (service->config.measure != NULL) {
        service->config.measure(service->config.userdata, body);
    }
}

static void answer_metrics(const struct service *service, struct web_exchange *exchange)
{
    struct buffer body;

    buffer_init(&body, BODY_MAX);
    put_metrics(service, &body);
    if (buffer_text(&body) == NULL) {
        web_refuse(exchange, 503, "out of memory");
    } else {
        answer_text(exchange, 200, EXPOSITION_TYPE, buffer_text(&body));
    }
    buffer_fini(&body);
}

/* ---- Requests -------------------------------------------------------------------------------- */

/* Against DNS rebinding: a stranger's name always has a dot, so a name without one is trusted. */
static bool knows_host(const struct service_config *config, const char *host)
{
    char name[WEB_HOST_MAX], own[HOST_NAME_MAX + 1] = "";

    if (host == NULL || host[0] == '\0' ||
        web_host_is_ours(config->web.host != NULL ? config->web.host : "localhost", config->hosts,
                         host)) {
        return true;
    }
    (void)gethostname(own, sizeof(own) - 1);
    return web_host_name(host, name) &&
           (strchr(name, '.') == NULL || web_is_address(name) || strcasecmp(name, own) == 0);
}

/* 0, or the status of a refusal and its reason. */
static unsigned check(const struct service *service, const struct web_request *request,
                      const char *path, bool is_upgrade, const char **ret_reason)
{
    const char *token = service->config.token;

    if (is_upgrade && web_header(&request->head, "origin") != NULL) {
        *ret_reason = "a page in a browser cannot drive the worker: this request has an Origin";
        return 403;
    }
    if (!is_upgrade && (strcmp(path, "/healthz") == 0 || strcmp(path, "/readyz") == 0)) {
        token = NULL;
    } else if (!is_upgrade && token == NULL &&
               !knows_host(&service->config, web_header(&request->head, "host"))) {
        *ret_reason = "this worker does not know that it is that host: ask for its address, or "
                      "name the host by --http-host, or use a token";
        return 403;
    }
    if (token != NULL && !web_shows_token(request, token)) {
        *ret_reason = "a bearer token is needed";
        return 401;
    }
    *ret_reason = "too many answers wait to be read";
    return !is_upgrade && web_server_backlog(service->web) > ANSWERS_MAX ? 503 : 0;
}

static void answer_page(struct service *service, struct web_exchange *exchange, const char *path)
{
    const char *target = web_exchange_request(exchange)->target;
    struct camera_question wanted;
    struct baton_error error;
    bool is_ready = service->drain == DRAIN_NOT;
    int rc;

    if (strcmp(path, "/healthz") == 0) {
        answer_text(exchange, 200, "text/plain; charset=utf-8", "ok\n");
    } else if (strcmp(path, "/readyz") == 0) {
        answer_text(exchange, is_ready ? 200 : 503, "text/plain; charset=utf-8",
                    is_ready ? "ready\n" : "draining\n");
    } else if (strcmp(path, "/metrics") == 0) {
        answer_metrics(service, exchange);
    } else if (strcmp(path, "/status") == 0) {
        answer_status(service, exchange);
    } else if ((rc = camera_question_parse(&wanted, path, web_query(target), &error)) == 0) {
        service_picture_begin(service, &wanted, exchange);
    } else {
        web_refuse(exchange, rc == BATON_ENOENT ? 404 : 400, error.message);
    }
}

void service_http_begin(void *userdata, struct web_exchange *exchange)
{
    struct service *service = userdata;
    const struct web_request *request = web_exchange_request(exchange);
    bool is_upgrade = web_header(&request->head, "upgrade") != NULL;
    char path[WEB_PATH_MAX];
    const char *fault = is_upgrade ? web_socket_fault(request) : web_query_fault(request->target);
    const char *reason = fault != NULL ? fault : web_path(request->target, path);
    unsigned status = reason != NULL ? 400 : check(service, request, path, is_upgrade, &reason);

    if (status != 0) {
        web_refuse(exchange, status, reason);
    } else if (is_upgrade) {
        service_socket_begin(service, exchange);
    } else {
        answer_page(service, exchange, path);
    }
}

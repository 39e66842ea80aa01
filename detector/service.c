#include "detector/service_int.h"

#include "base/error.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- callbacks of the worker ---- */

static bool on_send(void *userdata, uint64_t backend, const char *text, size_t bytes,
                    bool with_receipt)
{
    struct service *service = userdata;
    return server_send(service->server, backend, text, bytes, with_receipt);
}

static void on_close(void *userdata, uint64_t backend, int code, const char *reason)
{
    struct service *service = userdata;
    log_notice(service->config.logger, "backend-closed", LOG_U64("backend", backend),
               LOG_I64("code", code), LOG_STR("reason", reason));
    server_drop(service->server, backend, code, reason);
}

static enum log_level level_of(enum worker_event_type type)
{
    switch (type) {
    case WORKER_MESSAGE_REFUSED:
    case WORKER_SUBSCRIPTION_REFUSED:
    case WORKER_MESSAGE_UNKNOWN:
    case WORKER_PATCH_REFUSED:
        return LOG_WARNING;
    case WORKER_SESSION_CHANGED:
    case WORKER_STAGE_CHANGED:
    case WORKER_PATCH_ANSWERED:
        return LOG_DEBUG;
    default:
        return LOG_INFO;
    }
}

static void on_event(void *userdata, const struct worker_event *event)
{
    struct service *service = userdata;
    enum log_level level = level_of(event->type);
    char session[24] = "";

    if (event->session.is_set) {
        (void)snprintf(session, sizeof(session), "%lld", (long long)event->session.id);
    }
    if (log_wants(service->config.logger, level)) {
        LOG_EVENT(service->config.logger, level, worker_event_name(event->type),
                  LOG_U64("backend", event->backend), LOG_STR("identifier", event->identifier),
                  LOG_STR("session", session[0] != '\0' ? session : NULL),
                  LOG_STR("text", event->text),
                  LOG_STR("error", event->error != NULL ? event->error->message : NULL));
    }
    if (event->type == WORKER_SUBSCRIPTION_UPDATED && (event->changes & CHANGE_CAMERA) != 0) {
        image_drop(service->images, event->identifier, IMAGE_STREAM);
    }
    if (event->type == WORKER_SUBSCRIPTION_REMOVED) {
        image_remove(service->images, event->identifier);
        service_stream_removed(service, event->identifier);
    }
    if (service->config.changed != NULL) {
        service->config.changed(service->config.userdata, event);
    }
}

/* ---- callbacks of the server ---- */

static void on_connected(void *userdata, uint64_t peer)
{
    struct service *service = userdata;
    worker_connected(service->worker, peer);
}

/* Logs once a minute: a refused client tries again. */
static void on_refused(void *userdata)
{
    struct service *service = userdata;
    instant now = clock_now();

    if (service->refusal_told_at.ns == 0 ||
        instant_since(now, service->refusal_told_at).ns >= SPAN_S(60).ns) {
        service->refusal_told_at = now;
        log_warning(service->config.logger, "connection-refused",
                    LOG_U64("limit", SERVER_CONNECTIONS_MAX),
                    LOG_U64("refused", server_refused(service->server)));
    }
}

static void on_disconnected(void *userdata, uint64_t peer)
{
    struct service *service = userdata;
    worker_disconnected(service->worker, peer);
}

static void on_received(void *userdata, uint64_t peer, const char *bytes, size_t count)
{
    struct service *service = userdata;
    (void)worker_receive(service->worker, peer, bytes, count); /* an error is an event already */
}

static void on_spoiled(void *userdata, uint64_t peer, const char *reason)
{
    struct service *service = userdata;
    worker_refuse(service->worker, peer, reason);
}

static void on_drained(void *userdata, uint64_t peer)
{
    struct service *service = userdata;
    if (worker_owner(service->worker) == peer) {
        worker_writable(service->worker);
    }
}

static void on_delivered(void *userdata, uint64_t peer)
{
    struct service *service = userdata;
    worker_delivered(service->worker, peer);
}

static void on_encoded(void *userdata, uint64_t ticket, const struct image *image,
                       const struct baton_error *error)
{
    if (!service_stream_encoded(userdata, ticket, image)) {
        service_http_encoded(userdata, ticket, image, error);
    }
}

static void on_heartbeat(uv_timer_t *timer)
{
    struct service *service = timer->data;
    usage_measure(&service->meter, clock_now(), &service->usage);
    gpu_measure(service->gpus, &service->usage);
    worker_tick(service->worker, &service->usage);
}

/* ---- start and end ---- */

static int start_server(struct service *service, struct baton_error *reterr)
{
    const struct service_config *config = &service->config;
    struct server_config server = {
        .loop = config->loop,
        .host = config->host,
        .port = config->port,
        .token = config->token,
        .hosts = config->hosts,
        .tls_cert = config->tls_cert,
        .tls_key = config->tls_key,
        .message_max = PROTOCOL_MESSAGE_MAX,
        .ping_after_s = config->ping_after_s,
        .hooks = {on_connected, on_refused, on_disconnected, on_received, on_spoiled, on_drained,
                  on_delivered, service_http_answer, service_stream_wanted, service_stream_left,
                  service},
    };
    return server_open(&service->server, &server, reterr);
}

static int start_timers(struct service *service, struct baton_error *reterr)
{
    uint64_t interval_ms = (uint64_t)service->config.report_interval_ms;

    usage_meter_init(&service->meter, service->config.system_root);
    usage_measure(&service->meter, clock_now(), &service->usage);
    service->gpus = gpu_meter_new(GPU_LIBRARY);
    gpu_measure(service->gpus, &service->usage);
    if (uv_timer_init(service->config.loop, &service->heartbeat) != 0 ||
        uv_timer_init(service->config.loop, &service->drainer) != 0) {
        return error_set(reterr, BATON_EIO, "cannot start the worker's timers");
    }
    service->has_timers = true;
    service->heartbeat.data = service->drainer.data = service;
    (void)uv_timer_start(&service->heartbeat, on_heartbeat, interval_ms, interval_ms);
    return 0;
}

int service_set_limits(struct service *service, int report_interval_ms, size_t queue_max)
{
    uint64_t interval_ms = (uint64_t)report_interval_ms;
    int rc = 0;

    if (queue_max != service->config.queue_max) {
        rc = worker_set_queue(service->worker, queue_max);
    }
    if (rc == 0 && report_interval_ms != service->config.report_interval_ms) {
        (void)uv_timer_start(&service->heartbeat, on_heartbeat, interval_ms, interval_ms);
    }
    if (rc == 0) {
        service->config.queue_max = queue_max;
        service->config.report_interval_ms = report_interval_ms;
    }
    return rc;
}

int service_open(struct service **ret, const struct service_config *config,
                 struct baton_error *reterr)
{
    const struct worker_hooks hooks = {on_send, on_close, on_event, NULL};
    struct service *service = calloc(1, sizeof(*service));
    struct worker_hooks with_service = hooks;
    int rc;

    assert(config->report_interval_ms >= 1);
    if (service == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for the worker");
    }
    service->config = *config;
    service->started_at = clock_now();
    with_service.userdata = service;
    service->worker = worker_new(&with_service, config->queue_max);
    service->images = image_store_new(PROTOCOL_SUBSCRIPTIONS_MAX);
    service->encoder = encoder_new(config->loop, on_encoded, service);
    if (service->worker == NULL || service->images == NULL || service->encoder == NULL) {
        service_free(service);
        return error_set(reterr, BATON_ENOMEM, "out of memory for the worker");
    }
    rc = start_server(service, reterr);
    if (rc == 0) {
        rc = start_timers(service, reterr);
    }
    if (rc != 0) {
        service_close(service);
        (void)uv_run(config->loop, UV_RUN_NOWAIT);
        service_free(service);
        return rc;
    }
    *ret = service;
    return 0;
}

int service_port(const struct service *service)
{
    return server_port(service->server);
}

const struct worker *service_worker(const struct service *service)
{
    return service->worker;
}

void service_frame(struct service *service, const char *identifier, enum image_source source,
                   bool is_shown, const struct frame *frame, const struct image_loan *loan)
{
    struct baton_error error = {0};

    if (worker_find(service->worker, identifier) == NULL) {
        return; /* the subscription was removed before its frame arrived */
    }
    if (image_put(service->images, identifier, source, frame, loan, &error) != 0) {
        log_warning(service->config.logger, "frame-refused", LOG_STR("identifier", identifier),
                    LOG_STR("error", error.message));
        return;
    }
    if (is_shown) {
        image_show(service->images, identifier, source);
    }
    service_stream_frame(service, identifier);
}

void service_away(struct service *service, const char *identifier, enum image_source source,
                  bool is_gone)
{
    if (is_gone) {
        image_drop(service->images, identifier, source);
    } else {
        image_settle(service->images, identifier, source);
    }
}

void service_boxes(struct service *service, const char *identifier, enum image_source source,
                   const struct image_box *boxes, size_t count)
{
    image_set_boxes(service->images, identifier, source, boxes, count);
}

void service_online(struct service *service, const char *identifier, bool is_online)
{
    if (!is_online) {
        for (enum image_source source = 0; source < IMAGE_SOURCES; source++) {
            image_set_boxes(service->images, identifier, source, NULL,
                            0); /* its objects are unknown now */
        }
    }
    worker_set_online(service->worker, identifier, is_online);
}

int service_detected(struct service *service, struct detection *detection,
                     struct baton_error *reterr)
{
    return worker_detected(service->worker, detection, reterr);
}

void service_close(struct service *service)
{
    if (service == NULL) {
        return;
    }
    if (service->has_timers && !uv_is_closing((uv_handle_t *)&service->heartbeat)) {
        uv_close((uv_handle_t *)&service->heartbeat, NULL);
        uv_close((uv_handle_t *)&service->drainer, NULL);
    }
    encoder_close(service->encoder);
    server_close(service->server);
}

void service_free(struct service *service)
{
    if (service == NULL) {
        return;
    }
    server_free(service->server);
    worker_free(service->worker);
    encoder_free(service->encoder);
    image_store_free(service->images);
    gpu_meter_free(service->gpus);
    free(service);
}

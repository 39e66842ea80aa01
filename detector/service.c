#include "detector/service_int.h"

#include "base/error.h"

#include <assert.h>
#include <malloc.h>
#include <stdlib.h>

enum {
    HEAD_WITHIN_S = 10,
    READ_WITHIN_S = 30,
    ANSWER_WITHIN_S = 30,         /* of a picture that is to be made */
    WAITING_BYTES_MAX = 36 << 20, /* for one client: of an answer, or of messages */
    LOOK_MS = 20,
    GOODBYE_MS = 1000,
};

/* ---- The worker ------------------------------------------------------------------------------ */

static void on_event(void *userdata, const struct worker_event *event)
{
    struct service *service = userdata;
#define LEVEL(symbol, name, level) [symbol] = LOG_##level,
    static const enum log_level levels[] = {WORKER_EVENTS(LEVEL)};
#undef LEVEL
    enum log_level level = levels[event->type];
    struct images *images = (struct images *)event->subscription;
    char session[24] = "";

    service->has_changed = true;
    if (event->session.is_set) {
        (void)snprintf(session, sizeof(session), "%lld", (long long)event->session.id);
    }
    if (log_wants(service->config.web.logger, level)) {
        LOG_EVENT(service->config.web.logger, level, worker_event_name(event->type),
                  LOG_U64("backend", event->backend), LOG_STR("identifier", event->identifier),
                  LOG_STR("session", session[0] != '\0' ? session : NULL),
                  LOG_STR("text", event->text),
                  LOG_STR("error", event->error != NULL ? event->error->message : NULL));
    }
    if (event->type == WORKER_SUBSCRIPTION_REMOVED) {
        images_fini(images);
        service_picture_removed(service, images);
    }
    if (service->config.changed != NULL) {
        service->config.changed(service->config.userdata, event);
    }
}

/* Cameras and models allocate pieces of many sizes. The C library would keep the gaps between them
 * when they are freed: some kilobytes for each change. */
static void on_heartbeat(uv_timer_t *timer)
{
    struct service *service = timer->data;
    struct usage usage;

    if (service->has_changed) {
        service->has_changed = false;
        (void)malloc_trim(0);
    }
    usage_measure(&service->meter, clock_now(), &usage);
    worker_tick(&service->worker, &usage);
}

/* ---- What is looked at every few milliseconds: receipts, and the drain ----------------------- */

static void begin_goodbye(struct service *service)
{
    size_t lost = worker_queued(&service->worker);

    if (lost > 0) {
        log_warning(service->config.web.logger, "detections-lost", LOG_U64("count", lost));
    }
    service->drain = DRAIN_GOODBYE;
    service->drain_until = instant_add(clock_now(), SPAN_MS(GOODBYE_MS));
    service_goodbye(service);
}

static void on_look(uv_timer_t *timer)
{
    struct service *service = timer->data;
    bool is_late = !instant_before(clock_now(), service->drain_until);

    service_deliver(service);
    if (service->drain == DRAIN_DELIVERS && (is_late || worker_queued(&service->worker) == 0)) {
        begin_goodbye(service);
    } else if (service->drain == DRAIN_GOODBYE && (is_late || service->connections == 0)) {
        (void)uv_timer_stop(timer);
        if (service->config.drained != NULL) {
            service->config.drained(service->config.userdata);
        }
    } else if (service->drain == DRAIN_NOT && service->worker.outbox.handed == 0) {
        (void)uv_timer_stop(timer);
    }
}

void service_look(struct service *service)
{
    if (!uv_is_active((uv_handle_t *)&service->looker)) {
        (void)uv_timer_start(&service->looker, on_look, LOOK_MS, LOOK_MS);
    }
}

void service_drain(struct service *service, span patience)
{
    if (service->drain != DRAIN_NOT) {
        return;
    }
    log_notice(service->config.web.logger, "draining",
               LOG_U64("queued", worker_queued(&service->worker)));
    service->drain = DRAIN_DELIVERS;
    service->drain_until = instant_add(clock_now(), patience);
    (void)uv_timer_start(&service->looker, on_look, 0, LOOK_MS);
}

/* ---- Start and end --------------------------------------------------------------------------- */

static int listen_there(struct service *service, struct baton_error *reterr)
{
    struct web_config *web = &service->config.web;
    int rc;

    web->connections_max = SERVICE_CONNECTIONS_MAX;
    web->head_within_s = HEAD_WITHIN_S;
    web->read_within_s = READ_WITHIN_S;
    web->answer_within_s = ANSWER_WITHIN_S;
    web->head_max = WEB_HEAD_MAX;
    web->answer_max = WAITING_BYTES_MAX;
    web->callbacks = (struct web_callbacks){.on_request = service_http_begin,
                                            .on_drain = service_picture_drained,
                                            .on_gone = service_picture_gone};
    web->userdata = service;
    rc = web_server_open(&service->web, web, reterr);
    return rc == BATON_EIO ? error_wrap(reterr, "%s%s port %d", web->host != NULL ? "--host " : "",
                                        web->host != NULL ? web->host : "every address,", web->port)
                           : rc;
}

static void start_timers(struct service *service)
{
    uint64_t interval_ms = (uint64_t)service->config.report_interval_ms;

    usage_meter_init(&service->meter, "", USAGE_GPU_LIBRARY);
    (void)uv_timer_init(service->config.web.loop, &service->heartbeat); /* these cannot fail */
    (void)uv_timer_init(service->config.web.loop, &service->looker);
    service->heartbeat.data = service->looker.data = service;
    on_heartbeat(&service->heartbeat);
    (void)uv_timer_start(&service->heartbeat, on_heartbeat, interval_ms, interval_ms);
}

void service_set_limits(struct service *service, int report_interval_ms, size_t queue_max)
{
    uint64_t interval_ms = (uint64_t)report_interval_ms;

    worker_set_queue(&service->worker, queue_max);
    if (report_interval_ms != service->config.report_interval_ms) {
        (void)uv_timer_start(&service->heartbeat, on_heartbeat, interval_ms, interval_ms);
        service->config.report_interval_ms = report_interval_ms;
    }
}

int service_open(struct service **ret, const struct service_config *config,
                 struct baton_error *reterr)
{
    struct service *service = calloc(1, sizeof(*service));
    const struct worker_hooks hooks = {service_send, service_drop, on_event, service,
                                       config->entry_bytes};
    int rc;

    assert(config->report_interval_ms >= 1);
    assert(config->entry_bytes >= sizeof(struct images));
    if (service == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for the worker");
    }
    service->config = *config;
    service->started_at = clock_now();
    worker_init(&service->worker, &hooks, config->queue_max);
    service->images = (struct image_store){
        .loop = config->web.loop, .made = service_picture_made, .userdata = service};
    rc = listen_there(service, reterr);
    if (rc != 0) {
        service_free(service);
        return rc;
    }
    start_timers(service);
    *ret = service;
    return 0;
}

int service_port(const struct service *service)
{
    return web_server_port(service->web);
}

struct worker *service_worker(struct service *service)
{
    return &service->worker;
}

void service_frame(struct service *service, struct images *images, bool is_shown,
                   const struct frame *frame)
{
    image_put(&service->images, images, frame);
    if (is_shown) {
        image_show(images, frame->source);
    }
    service_picture_frame(service, images);
}

void service_close(struct service *service)
{
    if (service == NULL) {
        return;
    }
    uv_close((uv_handle_t *)&service->heartbeat, NULL);
    uv_close((uv_handle_t *)&service->looker, NULL);
    image_store_close(&service->images);
    web_server_close(service->web);
}

void service_free(struct service *service)
{
    if (service == NULL) {
        return;
    }
    web_server_free(service->web);
    for (size_t i = 0; i < service->worker.subscription_count; i++) {
        images_fini((struct images *)service->worker.subscriptions[i]);
    }
    worker_fini(&service->worker);
    free(service);
}

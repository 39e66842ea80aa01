/* The drain: not ready any more, all detections delivered, the backends sent a close, done. */
#include "detector/service_int.h"

enum { LOOK_MS = 20, GOODBYE_MS = 1000, CLOSE_GOING_AWAY = 1001 };

static void begin_goodbye(struct service *service)
{
    size_t lost = worker_queued(service->worker);

    if (lost > 0) {
        log_warning(service->config.logger, "detections-lost", LOG_U64("count", lost));
    }
    service->drain = DRAIN_GOODBYE;
    service->drain_until = instant_add(clock_now(), SPAN_MS(GOODBYE_MS));
    server_end(service->server, CLOSE_GOING_AWAY, "this worker ends");
}

static void on_look(uv_timer_t *timer)
{
    struct service *service = timer->data;
    bool is_late = !instant_before(clock_now(), service->drain_until);

    if (service->drain == DRAIN_DELIVERS && (is_late || worker_queued(service->worker) == 0)) {
        begin_goodbye(service);
    } else if (service->drain == DRAIN_GOODBYE &&
               (is_late || server_connections(service->server) == 0)) {
        (void)uv_timer_stop(timer);
        if (service->config.drained != NULL) {
            service->config.drained(service->config.userdata);
        }
    }
}

void service_drain(struct service *service, span patience)
{
    if (service->drain != DRAIN_NOT) {
        return;
    }
    log_notice(service->config.logger, "draining",
               LOG_U64("queued", worker_queued(service->worker)));
    service->drain = DRAIN_DELIVERS;
    service->drain_until = instant_add(clock_now(), patience);
    (void)uv_timer_start(&service->drainer, on_look, 0, LOOK_MS);
}

/* A worker with painted cameras, for the tests that speak to it from outside.
 *
 *   detector_stand [--token TOKEN] [--cert PEM --key PEM] [--scale N] [--drain MS]
 *
 * Prints its port. Every subscription is given a frame each 20 ms, a grey picture of N (1) times
 * 64x48 that gets brighter, and is online from the first on. SIGUSR1: every subscription detects a
 * car. SIGUSR2: drains, for so long (0), and ends. SIGHUP: no new frames, until the next one.
 * SIGTERM: ends.
 */
#include "detector/service.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

enum { WIDTH = 64, HEIGHT = 48, SCALE_MAX = 64, FRAME_MS = 20, SIGNALS = 4 };

static struct {
    uv_loop_t loop;
    struct service *service;
    uv_timer_t painter;
    uv_signal_t signals[SIGNALS];
    unsigned painted, detected;
    int width, height;
    long drain_ms;
    uint8_t chroma[WIDTH * HEIGHT * SCALE_MAX * SCALE_MAX / 4];
} stand;

static struct images *next_entry(size_t index)
{
    const struct worker *worker = service_worker(stand.service);

    return index < worker->subscription_count ? (struct images *)worker->subscriptions[index]
                                              : NULL;
}

static void free_frame(struct frame *frame)
{
    free(frame);
}

static void paint(uv_timer_t *timer)
{
    size_t pixels = (size_t)stand.width * (size_t)stand.height;
    struct frame *frame = malloc(sizeof(*frame) + pixels);
    uint8_t *luma = (uint8_t *)(frame + 1);
    struct images *images;

    *frame = (struct frame){.width = stand.width,
                            .height = stand.height,
                            .stride = {stand.width, stand.width / 2, stand.width / 2},
                            .plane = {luma, stand.chroma, stand.chroma},
                            .is_full_range = true,
                            .refs = 1,
                            .free = free_frame};
    memset(luma, (int)(stand.painted++ % 200), pixels);
    for (size_t i = 0; (images = next_entry(i)) != NULL; i++) {
        service_frame(stand.service, images, true, frame);
        images->subscription.is_online = true;
    }
    frame_unref(frame);
}

static void detect(void)
{
    const struct image_box box = {WIDTH / 4, HEIGHT / 4, WIDTH / 2, HEIGHT / 2, 0};
    struct images *images;

    for (size_t i = 0; (images = next_entry(i)) != NULL; i++) {
        const struct subscription *subscription = &images->subscription;
        struct detection detection = {.identifier = strdup(subscription->identifier),
                                      .model_name = strdup(subscription->model_name),
                                      .model_id = subscription->model_id,
                                      .at_unix_ms = 1752573600000,
                                      .attributes = json_pack("{s:s, s:i}", "carBrand", "Honda",
                                                              "number", (int)++stand.detected)};
        image_set_boxes(images, IMAGE_STREAM, &box, 1);
        (void)worker_detected(service_worker(stand.service), &detection, NULL);
    }
}

static void end(void *userdata)
{
    if (uv_is_closing((uv_handle_t *)&stand.painter)) {
        return;
    }
    service_close(stand.service);
    uv_close((uv_handle_t *)&stand.painter, NULL);
    for (int i = 0; i < SIGNALS; i++) {
        uv_close((uv_handle_t *)&stand.signals[i], NULL);
    }
}

static void on_signal(uv_signal_t *handle, int number)
{
    if (number == SIGUSR1) {
        detect();
    } else if (number == SIGUSR2) {
        service_drain(stand.service, SPAN_MS(stand.drain_ms));
    } else if (number == SIGHUP && uv_is_active((uv_handle_t *)&stand.painter)) {
        (void)uv_timer_stop(&stand.painter);
    } else if (number == SIGHUP) {
        (void)uv_timer_start(&stand.painter, paint, FRAME_MS, FRAME_MS);
    } else {
        end(NULL);
    }
}

static void start(void)
{
    static const int numbers[SIGNALS] = {SIGUSR1, SIGUSR2, SIGHUP, SIGTERM};

    (void)uv_timer_init(&stand.loop, &stand.painter);
    (void)uv_timer_start(&stand.painter, paint, FRAME_MS, FRAME_MS);
    for (int i = 0; i < SIGNALS; i++) {
        (void)uv_signal_init(&stand.loop, &stand.signals[i]);
        (void)uv_signal_start(&stand.signals[i], on_signal, numbers[i]);
    }
}

int main(int count, char **arguments)
{
    struct baton_error error = {0};
    struct service_config config = {.web = {.loop = &stand.loop,
                                            .host = "127.0.0.1",
                                            .logger = logger_new(2, LOG_FORMAT_HUMAN, LOG_DEBUG)},
                                    .report_interval_ms = 100,
                                    .queue_max = 3,
                                    .entry_bytes = sizeof(struct images),
                                    .drained = end};
    long scale = 1;

    (void)signal(SIGPIPE, SIG_IGN);         /* as the worker does */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* should the test be killed */
    for (int i = 1; i + 1 < count; i += 2) {
        const char *name = arguments[i], *value = arguments[i + 1];
        config.token = strcmp(name, "--token") == 0 ? value : config.token;
        config.web.tls_cert = strcmp(name, "--cert") == 0 ? value : config.web.tls_cert;
        config.web.tls_key = strcmp(name, "--key") == 0 ? value : config.web.tls_key;
        scale = strcmp(name, "--scale") == 0 ? strtol(value, NULL, 10) : scale;
        stand.drain_ms = strcmp(name, "--drain") == 0 ? strtol(value, NULL, 10) : stand.drain_ms;
    }
    if (scale < 1 || scale > SCALE_MAX) {
        return 1;
    }
    stand.width = WIDTH * (int)scale;
    stand.height = HEIGHT * (int)scale;
    memset(stand.chroma, 128, sizeof(stand.chroma));
    (void)uv_loop_init(&stand.loop);
    if (service_open(&stand.service, &config, &error) != 0) {
        (void)fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    start();
    (void)printf("port %d\n", service_port(stand.service));
    (void)fflush(stdout);
    (void)uv_run(&stand.loop, UV_RUN_DEFAULT);
    service_free(stand.service);
    (void)uv_run(&stand.loop, UV_RUN_DEFAULT);
    logger_free(config.web.logger);
    return uv_loop_close(&stand.loop) == 0 ? 0 : 3;
}

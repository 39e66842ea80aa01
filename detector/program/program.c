#include "detector/program/program.h"

#include "base/host.h"
#include "options/notify.h"
#include "options/serve.h"
#include "web/exposition.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FILES_WANTED = SERVICE_CONNECTIONS_MAX + 4096, /* each camera and model has a few */
};

struct program {
    int argc;
    char **argv;
    const struct options *options; /* as of the start; borrowed */
    struct program_settings settings;
    struct parts parts;
    struct logger *logger;
    struct service *service;
    struct watch watch;
    struct serve serve;
    bool is_draining;
    bool is_closing;
};

/* ---- Calls between the parts ----------------------------------------------------------------- */

static struct entry *entry_of(struct subscription *subscription)
{
    return (struct entry *)subscription;
}

static void on_changed(void *userdata, const struct worker_event *event)
{
    struct program *program = userdata;
    struct entry *entry = entry_of(event->subscription);

    if (entry) {
        watch_event(&program->watch, &entry->cameras, event);
        models_event(&program->parts.models, &entry->models, event);
    }
}

static void on_frame(void *userdata, struct images *images, const struct frame *frame,
                     enum watch_role role)
{
    struct program *program = userdata;
    const struct subscription *subscription = &images->subscription;

    service_frame(program->service, images, role != WATCH_ASIDE, frame);
    if (role != WATCH_SHOWN || program->is_draining) {
        return; /* while the program drains, no new result would be sent */
    }
    models_frame(&((struct entry *)images)->models, frame,
                 worker_stage(service_worker(program->service), subscription->identifier));
}

static void on_detected(void *userdata, struct detection *detection)
{
    struct program *program = userdata;
    struct baton_error error;

    if (worker_detected(service_worker(program->service), detection, &error) != 0) {
        log_warning(program->logger, "detection-refused", LOG_STR("error", error.message));
    }
}

static json_t *source_json(const struct camera_stats *stats)
{
    const struct camera_fps *fps = &stats->fps;

    return json_pack(
        "{s:b, s:s, s:s, s:i, s:i, s:f, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s*, "
        "s:{s:f, s:f, s:f, s:f}}",
        "online", (int)stats->is_online, "codec", stats->codec, "hardware", stats->hardware,
        "width", stats->width, "height", stats->height, "nominal_fps", stats->nominal_fps,
        "subscribers", (int)stats->subscribers, "received", (json_int_t)stats->counts.received,
        "decoded", (json_int_t)stats->counts.decoded, "dropped", (json_int_t)stats->counts.dropped,
        "shown", (json_int_t)stats->shown, "skipped", (json_int_t)stats->skipped, "still",
        (json_int_t)stats->still, "restarts", (json_int_t)stats->restarts, "last_error",
        stats->last_error[0] ? stats->last_error : NULL, "fps", "received", fps->received,
        "decoded", fps->decoded, "dropped", fps->dropped, "shown", fps->shown);
}

/* For /status. */
static void on_describe(void *userdata, struct subscription *subscription, json_t *camera)
{
    struct entry *entry = entry_of(subscription);
    struct camera_stats stats;

    (void)userdata;
    if (watch_stats(&entry->cameras, IMAGE_STREAM, &stats)) {
        (void)json_object_set_new(camera, "stream", source_json(&stats));
    }
    if (watch_stats(&entry->cameras, IMAGE_SNAPSHOT, &stats)) {
        (void)json_object_set_new(camera, "snapshots", source_json(&stats));
    }
    models_describe(&entry->models, camera);
}

/* For /metrics: models, and archives unless there is a file for all. */
static void on_measure(void *userdata, struct buffer *body)
{
    struct parts *parts = &((struct program *)userdata)->parts;

    models_measure(&parts->models, body);
    if (!parts->only && parts->supply) {
        const struct supply_counters counters = supply_counters(parts->supply);
#define COUNTER(name, help)                                                                        \
    exposition_single(body, "baton_detector_archives_" #name "_total", "counter", help,            \
                      (double)counters.name);
        SUPPLY_COUNTERS(COUNTER)
#undef COUNTER
    }
}

/* ---- The end --------------------------------------------------------------------------------- */

static void close_all(void *userdata)
{
    struct program *program = userdata;

    if (program->is_closing) {
        return;
    }
    program->is_closing = true;
    watch_end(&program->watch);
    parts_close(&program->parts);
    service_close(program->service);
    serve_end(&program->serve);
}

static void drain(struct program *program)
{
    if (program->is_draining) { /* the second request: ends at once */
        close_all(program);
        return;
    }
    program->is_draining = true;
    notify_stopping();
    service_drain(program->service, program->settings.drain);
}

/* ---- Signals and systemd --------------------------------------------------------------------- */

static void take(struct program *program, const struct program_settings *settings)
{
    service_set_limits(program->service, settings->service.report_interval_ms,
                       settings->service.queue_max);
    log_set_level(program->logger, settings->log_level);
    watch_set_interval(&program->watch, settings->camera.interval_ms);
    store_set_max(program->parts.store, settings->cache_bytes_max);
    supply_set_recheck(program->parts.supply, settings->supply.recheck_ms);
    program->settings.drain = settings->drain;
}

static void tell_reloaded(const struct program *program, const struct options *options)
{
    char taken[512] = "", changed[256] = "";
    const struct option_spec *spec;

    for (size_t i = 0; (spec = options_spec(options, i)) != NULL; i++) {
        size_t bytes = strlen(taken), names = strlen(changed);
        if (strstr(spec->help, "read anew on SIGHUP")) { /* by take() */
            (void)snprintf(taken + bytes, sizeof(taken) - bytes, "%s%s=%s", bytes > 0 ? " " : "",
                           spec->name, options_text(options, spec->name));
        } else if (!options_agree(options, program->options, spec->name)) {
            (void)snprintf(changed + names, sizeof(changed) - names, "%s%s", names > 0 ? " " : "",
                           spec->name);
        }
    }
    log_notice(program->logger, "reloaded", LOG_STR("options", taken));
    if (changed[0]) {
        log_warning(program->logger, "restart-needed", LOG_STR("changed", changed));
    }
}

/* A configuration that the program would not start with is refused as a whole. */
static void reload(struct program *program)
{
    struct options *options = NULL;
    struct program_settings settings;
    struct baton_error error;
    int code = program_take(&options, &program_about, program->argc, program->argv, &error);

    code = code ? code : program_settings(&settings, options, &error);
    explicit_bzero(settings.token, sizeof(settings.token));
    if (code) {
        log_error(program->logger, "reload-refused", LOG_STR("error", error.message));
    } else {
        take(program, &settings);
        tell_reloaded(program, options);
    }
    options_free(options);
}

static void on_signal(uv_signal_t *handle, int number)
{
    if (number == SIGHUP) {
        reload(handle->data);
    } else {
        drain(handle->data);
    }
}

/* ---- The beginning --------------------------------------------------------------------------- */

static void check_descriptors(struct logger *logger, uint64_t files)
{
    if (files < FILES_WANTED) {
        log_warning(logger, "few-descriptors", LOG_U64("limit", files),
                    LOG_U64("wanted", FILES_WANTED),
                    LOG_STR("advice", "connections and cameras may run out of them: raise the hard "
                                      "limit (ulimit -Hn, LimitNOFILE=)"));
    }
}

static int open_parts(struct program *program, struct baton_error *reterr)
{
    struct program_settings *settings = &program->settings;
    int code;

    settings->models.detected = on_detected;
    settings->models.userdata = program;
    settings->service.entry_bytes = sizeof(struct entry);
    settings->service.web.loop = &program->parts.loop;
    settings->service.web.logger = program->logger;
    settings->service.changed = on_changed;
    settings->service.describe = on_describe;
    settings->service.measure = on_measure;
    settings->service.drained = close_all;
    settings->service.userdata = program;
    code = parts_open(&program->parts, settings, program->logger, reterr);
    if (code) {
        return code;
    }
    program->watch = (struct watch){.pool = program->parts.pool,
                                    .options = settings->camera,
                                    .logger = program->logger,
                                    .on_frame = on_frame,
                                    .userdata = program};
    return service_open(&program->service, &settings->service, reterr);
}

static void announce(const struct program *program)
{
    const struct web_config *web = &program->settings.service.web;
    const bool is_v6 = web->host && strchr(web->host, ':');
    char text[128];

    if (!program->settings.service.token && !host_is_loopback(web->host)) {
        log_warning(program->logger, "open-to-all",
                    LOG_STR("advice",
                            "every client that reaches this port drives the worker and sees "
                            "its cameras; --token-file or --host 127.0.0.1 prevents it"));
    }
    (void)snprintf(text, sizeof(text), "%s://%s%s%s:%d/", web->tls_cert ? "wss" : "ws",
                   is_v6 ? "[" : "", web->host ? web->host : "localhost", is_v6 ? "]" : "",
                   service_port(program->service));
    log_notice(program->logger, "listening", LOG_I64("port", service_port(program->service)),
               LOG_STR("url", text));
    (void)snprintf(text, sizeof(text), "port %d", service_port(program->service));
    notify_status(text);
    notify_ready();
}

static int serve(struct program *program, uint64_t files, struct baton_error *reterr)
{
    int code;

    check_descriptors(program->logger, files);
    code = open_parts(program, reterr);
    if (code) {
        close_all(program);
    } else {
        serve_begin(&program->serve, &program->parts.loop, SERVE_SIGNALS, on_signal, program);
        announce(program);
    }
    (void)uv_run(&program->parts.loop, UV_RUN_DEFAULT);
    service_free(program->service);
    return code;
}

int program_run(int argc, char **argv, const struct options *options, struct baton_error *reterr)
{
    struct program program = {.argc = argc, .argv = argv, .options = options};
    struct program_settings *settings = &program.settings;
    int code = program_settings(settings, options, reterr);
    uint64_t files;
    bool is_silent;

    if (code) {
        return code;
    }
    files = serve_prepare();
    is_silent = settings->clip && settings->log_level < LOG_INFO; /* an error ends a try */
    program.logger = is_silent ? NULL : program_logger(options);
    if ((!program.logger && !is_silent) || uv_loop_init(&program.parts.loop) != 0) {
        logger_free(program.logger);
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    code = settings->clip ? program_try(settings, &program.parts, program.logger, reterr)
                          : serve(&program, files, reterr);
    parts_free(&program.parts);
    logger_free(program.logger);
    explicit_bzero(settings->token, sizeof(settings->token));
    return code;
}

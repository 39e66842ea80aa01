/* A pipeline on a clip, without a backend: the way to see whether a model works.
 *
 *   archive ─▶ models open ─▶ clip, every frame ─▶ lines of JSON: findings.h
 *                                               ─▶ contact sheet, PNG
 *                                               ─▶ progress and a summary, on stderr
 */
#include "base/error.h"
#include "detector/program/findings.h"
#include "detector/program/local_model.h"
#include "detector/program/program.h"
#include "detector/program/sheet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_MS = 100 };

static const char identifier[] = "try;clip";

struct
try {
    const struct program_settings *settings;
    char *clip; /* its whole path: the camera's child is in another folder */
    uv_loop_t loop;
    uv_timer_t look;
    struct logger *logger;
    struct camera_pool *pool;
    struct camera *camera;
    struct local_model *local_model;
    struct models *models;
    struct sheet *sheet; /* NULL: none is asked for */
    struct findings *findings;
    uint64_t frames, done;
    span busy;
    instant begin;
    bool has_timer, has_ended, is_closing;
    struct baton_error error;
};

static void close_all(struct try *try)
{
    if (try->is_closing) {
        return;
    }
    try->is_closing = true;
    camera_close(try->camera);
    if (try->models) {
        models_close(try->models);
    }
    if (try->pool) {
        camera_pool_close(try->pool);
    }
    if (try->has_timer) {
        uv_close((uv_handle_t *)&try->look, NULL);
    }
}

static void fail(struct try *try, const struct baton_error *error)
{
    if (!try->error.code) {
        try->error = *error;
    }
}

/* Once nothing more can come. Closing is left to the timer: hooks must not call back in. */
static bool is_over(const struct try *try)
{
    return try->error.code || (try->has_ended && try->done == try->frames);
}

static void show_progress(const struct try *try)
{
    double seconds = (double)instant_since(clock_now(), try->begin).ns / 1e9;

    (void)fprintf(stderr, "\r%llu frames, %.0f a second, %llu detections ",
                  (unsigned long long)try->done, seconds > 0 ? (double)try->done / seconds : 0,
                  (unsigned long long)findings_counts(try->findings).detections);
}

static void on_look(uv_timer_t *timer)
{
    struct try *try = timer->data;
    struct camera_stats stats = {0};

    if (try->camera) {
        camera_stats(try->camera, &stats);
    }
    if (try->frames == 0 && stats.last_error[0] && !try->has_ended) {
        struct baton_error error = {0};
        (void)error_set(&error, BATON_EIO, "%s: %s", try->settings->clip, stats.last_error);
        fail(try, &error);
    }
    if (try->done > 0 && isatty(STDERR_FILENO)) {
        show_progress(try);
    }
    if (is_over(try)) {
        close_all(try);
    }
}

/* ---- The clip ------------------------------------------------------------------------------- */

static void on_frame(void *userdata, const struct camera_frame *frame)
{
    struct try *try = userdata;

    try->frames++;
    models_frame(try->models, identifier, frame, STAGE_NONE);
}

static void on_ended(void *userdata)
{
    ((struct try *)userdata)->has_ended = true;
}

static void on_changed(void *userdata, const char *of, const struct baton_error *error)
{
    struct try *try = userdata;
    const struct camera_callbacks callbacks = {
        .frame = on_frame, .ended = on_ended, .userdata = try};
    struct camera_options options = try->settings->camera;
    struct baton_error own = {0};

    (void)of;
    options.is_lossless = true;
    if (error) {
        fail(try, error);
    } else if (!try->camera) {
        try->begin = clock_now();
        if (camera_open(&try->camera, try->pool, try->clip, &options, &callbacks, &own)) {
            fail(try, &own);
        }
    }
}

/* ---- What is seen --------------------------------------------------------------------------- */

static void on_seen(void *userdata, const char *of, const struct inference_result *result)
{
    struct try *try = userdata;
    struct baton_error error = {0};

    (void)of;
    try->done++;
    try->busy.ns += result->busy.ns;
    if (findings_add(try->findings, result, &error) != 0) {
        fail(try, &error);
    }
    if (try->sheet && sheet_add(try->sheet, result, &error) != 0) {
        fail(try, &error);
    }
}

static void on_detected(void *userdata, struct detection *detection)
{
    (void)userdata;
    detection_fini(detection);
}

static void on_failed(void *userdata, const struct baton_error *error)
{
    fail(userdata, error);
}

/* ---- From the beginning to the end ---------------------------------------------------------- */

static int open_models(struct try *try, struct baton_error *reterr)
{
    const struct subscription subscription = {
        .identifier = (char *)identifier, .model_url = (char *)"", .model_name = (char *)"try"};
    const struct worker_event event = {
        .type = WORKER_SUBSCRIPTION_ADDED, .identifier = identifier, .subscription = &subscription};
    struct models_config config = {.loop = &try->loop,
                                   .logger = try->logger,
                                   .engine = try->settings->engine,
                                   .uses_stream_time = true,
                                   .detected = on_detected,
                                   .changed = on_changed,
                                   .seen = on_seen,
                                   .failed = on_failed,
                                   .userdata = try};
    int code = local_model_new(&try->local_model, &try->loop, try->settings->model, reterr);

    if (code) {
        return code;
    }
    config.source = local_model_source(try->local_model);
    try->models = models_new(&config);
    if (!try->models) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    models_event(try->models, &event);
    return 0;
}

static int open_all(struct try *try, struct baton_error *reterr)
{
    struct camera_pool_config config = try->settings->pool;
    int code = findings_open(&try->findings, try->settings->out, reterr);

    if (code) {
        return code;
    }
    config.loop = &try->loop;
    config.logger = try->logger;
    config.allows_files = true;
    code = camera_pool_new(&try->pool, &config, reterr);
    if (code) {
        try->pool = NULL;
        return code;
    }
    if (try->settings->sheet) {
        try->sheet = sheet_new();
        if (!try->sheet) {
            return error_set(reterr, BATON_ENOMEM, "out of memory");
        }
    }
    (void)uv_timer_init(&try->loop, &try->look);
    try->look.data = try;
    try->has_timer = true;
    (void)uv_timer_start(&try->look, on_look, LOOK_MS, LOOK_MS);
    return open_models(try, reterr);
}

static int summarize(struct try *try, struct baton_error *reterr)
{
    struct findings_counts counts = findings_counts(try->findings);
    int code = findings_flush(try->findings, reterr);

    if (code) {
        return code;
    }
    if (isatty(STDERR_FILENO)) {
        (void)fputc('\r', stderr);
    }
    (void)fprintf(stderr, "%llu frames, %llu objects in them, %llu detections, %.2f ms a frame\n",
                  (unsigned long long)counts.frames, (unsigned long long)counts.objects,
                  (unsigned long long)counts.detections,
                  try->done > 0 ? (double)try->busy.ns / 1e6 / (double)try->done : 0.0);
    return try->sheet ? sheet_write(try->sheet, try->settings->sheet, reterr) : 0;
}

int program_try(const struct program_settings *settings, struct baton_error *reterr)
{
    struct try try = {.settings = settings};
    int code;

    try.clip = realpath(settings->clip, NULL);
    if (!try.clip || access(try.clip, R_OK) != 0) {
        free(try.clip);
        return error_set(reterr, BATON_ENOENT, "--try %s: is no clip that can be read",
                         settings->clip);
    }
    try.logger = logger_new(STDERR_FILENO, log_format_for(STDERR_FILENO, settings->log_json),
                            settings->log_level);
    if (!try.logger || uv_loop_init(&try.loop) != 0) {
        logger_free(try.logger);
        free(try.clip);
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    code = open_all(&try, reterr);
    if (code) {
        close_all(&try);
    }
    (void)uv_run(&try.loop, UV_RUN_DEFAULT);
    if (!code && try.error.code) {
        code = error_set(reterr, try.error.code, "%s", try.error.message);
    }
    code = code ? code : summarize(&try, reterr);
    sheet_free(try.sheet);
    findings_free(try.findings);
    camera_pool_free(try.pool);
    models_free(try.models);
    local_model_free(try.local_model);
    (void)uv_run(&try.loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&try.loop);
    logger_free(try.logger);
    free(try.clip);
    return code;
}

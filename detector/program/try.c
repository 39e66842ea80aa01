/* A pipeline on a clip, without a backend: the way to see whether a model works.
 *
 *   archive ─▶ models open ─▶ clip, every frame ─▶ lines of JSON, pictures: findings.h
 *                                               ─▶ progress and a summary, on stderr
 */
#include "base/error.h"
#include "detector/program/findings.h"
#include "detector/program/program.h"
#include "options/serve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOK_MS = 100,
    TORN_MS = 500, /* a clip's end may be short by so much */
};

struct
try {
    struct program_settings *settings;
    char *clip; /* its whole path: the camera's child is in another folder */
    struct parts *parts;
    struct images images;
    struct bound models;
    uv_timer_t look;
    struct serve serve;
    struct camera *camera;
    struct findings findings;
    uint64_t frames;  /* shown to the models */
    int64_t first_us; /* the clip's own time of its first frame */
    span frame;       /* of the clip's time; 0: unknown */
    span position, duration, busy;
    int printed; /* tenths of the clip */
    bool has_ended, is_closing;
    struct baton_error error;
};

static void close_all(struct try *try)
{
    if (try->is_closing) {
        return;
    }
    try->is_closing = true;
    camera_close(try->camera);
    parts_close(try->parts);
    uv_close((uv_handle_t *)&try->look, NULL);
    serve_end(&try->serve);
}

/* True once no more result can come. The timer closes, because hooks must not call back in. */
static bool is_over(const struct try *try)
{
    return try->error.code || (try->has_ended && try->findings.counts.frames == try->frames);
}

/* ---- Progress ------------------------------------------------------------------------------- */

/* 0 to 1; below 0: unknown. The small addition is against rounding: a tenth of a clip is often a
 * frame's start. */
static double share_of(const struct try *try)
{
    double share = try->duration.ns > 0 ? (double)try->position.ns / (double)try->duration.ns : -1;

    return share > 1 ? 1 : share + 1e-6;
}

/* Prints a line for each tenth of a clip of known length; the end has a line of its own. */
static void print_progress(struct try *try, double share)
{
    unsigned long long frames = try->findings.counts.frames;
    unsigned long long detections = try->findings.counts.detections;
    int step = (int)(share * 10);

    if (step > try->printed && step < 10) {
        try->printed = step;
        (void)fprintf(stderr, "%d %%: %llu frames, %llu detections\n", step * 10, frames,
                      detections);
    }
}

/* ---- The loop ------------------------------------------------------------------------------- */

static void on_look(uv_timer_t *timer)
{
    struct try *try = timer->data;
    const char *clip = try->settings->clip;
    struct camera_stats stats = {0};

    if (is_over(try)) {
        close_all(try);
        return;
    }
    if (try->camera && !try->has_ended) {
        camera_stats(try->camera, &stats);
    }
    /* An offline clip would be reopened and begin from its start: it ends the try, at the next
     * look: Ctrl-C kills the children as well, and by then its signal has arrived. */
    if (stats.last_error[0]) {
        (void)error_set(&try->error, BATON_EPROTO,
                        "--try %s: broke off after %llu frames: %s; 'ffprobe %s' shows what it is",
                        clip, (unsigned long long)try->frames, stats.last_error, clip);
    }
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct try *try = handle->data;

    (void)number;
    (void)error_set(&try->error, BATON_ECANCELED, "--try %s: stopped before its end",
                    try->settings->clip);
}

/* ---- The clip ------------------------------------------------------------------------------- */

static void on_frame(void *userdata, const struct frame *frame)
{
    struct try *try = userdata;

    if (try->frames++ == 0) {
        struct camera_stats stats;
        camera_stats(try->camera, &stats);
        try->duration = stats.duration;
        try->frame.ns = stats.nominal_fps > 0 ? (int64_t)(1e9 / stats.nominal_fps) : 0;
        try->first_us = frame->pts_us;
    }
    models_frame(&try->models, frame, STAGE_NONE);
}

static void on_ended(void *userdata)
{
    ((struct try *)userdata)->has_ended = true;
}

/* The command line is not at fault if an archive is wrong. */
static void refuse_model(struct try *try, const struct baton_error *error)
{
    const char *hint =
        try->camera ? "; is pipeline.json right about its models? docs/pipeline.md" : "";

    if (!try->error.code) {
        bool is_bad = error->code == BATON_EINVAL || error->code == BATON_ETOOBIG;
        (void)error_set(&try->error, is_bad ? BATON_EPROTO : error->code, "--model %s: %s%s",
                        try->settings->file, error->message, hint);
    }
}

static void on_changed(void *userdata, const struct baton_error *error)
{
    struct try *try = userdata;
    const struct camera_callbacks callbacks = {
        .frame = on_frame, .ended = on_ended, .userdata = try};
    struct camera_options options = try->settings->camera;

    options.is_lossless = true; /* and no rate or gate: every frame */
    options.interval_ms = 0;
    options.motion_permille = 0;
    if (error) {
        refuse_model(try, error);
    } else if (!try->camera && !try->error.code) {
        (void)camera_open(&try->camera, try->parts->pool, try->clip, &options, &callbacks,
                          &try->error);
    }
}

/* ---- Results -------------------------------------------------------------------------------- */

/* The position in the clip up to which frames were seen; 0 if it is unknown. */
static span position_of(const struct try *try, const struct frame *frame)
{
    span position = {0};

    if (frame->pts_us != CAMERA_NO_PTS && try->first_us != CAMERA_NO_PTS) {
        position = SPAN_US(frame->pts_us - try->first_us);
        position.ns += try->frame.ns;
    }
    return position;
}

static void on_seen(void *userdata, const struct inference_result *result)
{
    struct try *try = userdata;

    try->busy.ns += result->busy.ns;
    try->position = position_of(try, result->frame);
    if (!try->error.code) {
        (void)findings_add(&try->findings, result, share_of(try), &try->error);
        print_progress(try, share_of(try));
    }
}

/* ---- From the beginning to the end ---------------------------------------------------------- */

static int open_all(struct try *try, struct logger *logger, struct baton_error *reterr)
{
    const struct worker_event event = {.type = WORKER_SUBSCRIPTION_ADDED,
                                       .subscription = &try->images.subscription};
    struct models_config *models = &try->settings->models;
    int code = findings_open(&try->findings, try->settings->out, reterr);

    models->uses_stream_time = true;
    models->changed = on_changed;
    models->seen = on_seen;
    models->userdata = try;
    try->settings->pool.allows_files = true;
    code = code ? code : parts_open(try->parts, try->settings, logger, reterr);
    if (!code) {
        models_event(&try->parts->models, &try->models, &event);
    }
    return code;
}

/* The part of a clip that is missing is seldom an error to its decoder. */
static void warn_if_torn(const struct try *try)
{
    int64_t missing_ns = try->duration.ns - try->position.ns;

    if (try->has_ended && try->position.ns > 0 && missing_ns > TORN_MS * 1000000LL) {
        (void)fprintf(stderr, "%s: ended at %.1f s, but says that it lasts %.1f s; is it whole?\n",
                      try->settings->clip, (double)try->position.ns / 1e9,
                      (double)try->duration.ns / 1e9);
    }
}

/* Says what was found, also after an error. */
static int finish(struct try *try, struct baton_error *reterr)
{
    uint64_t frames = try->findings.counts.frames;
    int code;

    if (frames == 0) {
        return try->error.code ? 0
                               : error_set(reterr, BATON_EPROTO, "--try %s: has no picture in it",
                                           try->settings->clip);
    }
    warn_if_torn(try);
    (void)fprintf(stderr, "%llu frames, %llu objects in them, %llu detections, %.2f ms a frame\n",
                  (unsigned long long)frames, (unsigned long long)try->findings.counts.objects,
                  (unsigned long long)try->findings.counts.detections,
                  (double)try->busy.ns / 1e6 / (double)frames);
    code = findings_close(&try->findings, reterr);
    if (!code && try->settings->out) {
        (void)fprintf(stderr, "written to %s: detections.jsonl, objects.jsonl, seen.html\n",
                      try->settings->out);
    }
    return code;
}

static int run(struct try *try, struct logger *logger, struct baton_error *reterr)
{
    uv_loop_t *loop = &try->parts->loop;
    int code;

    (void)uv_timer_init(loop, &try->look);
    try->look.data = try;
    (void)uv_timer_start(&try->look, on_look, LOOK_MS, LOOK_MS);
    code = open_all(try, logger, reterr);
    if (code) {
        close_all(try);
    } else { /* a signal ended the process at once until now; from now on there is a summary */
        serve_begin(&try->serve, loop, SERVE_SIGNALS - 1, on_signal, try);
    }
    (void)uv_run(loop, UV_RUN_DEFAULT);
    code = code ? code : finish(try, reterr);
    /* The end of a file whose write has failed does not know the reason any more. */
    if (try->error.code && (!code || try->error.code != BATON_ECANCELED)) {
        code = error_set(reterr, try->error.code, "%s", try->error.message);
    }
    (void)findings_close(&try->findings, NULL);
    return code;
}

int program_try(struct program_settings *settings, struct parts *parts, struct logger *logger,
                struct baton_error *reterr)
{
    struct try try = {.settings = settings,
                      .clip = realpath(settings->clip, NULL),
                      .parts = parts,
                      .images.subscription = {.identifier = (char *)"try;clip",
                                              .model_url = (char *)"",
                                              .model_name = (char *)"try"}};
    int code;

    if (!try.clip) {
        return error_set(reterr, error_from_errno(errno), "--try %s: %s", settings->clip,
                         strerror(errno));
    }
    code = run(&try, logger, reterr);
    free(try.clip);
    return code;
}

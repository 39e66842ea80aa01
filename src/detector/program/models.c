#include "detector/program/models.h"

#include "detector/infer/latency.h"
#include "detector/program/figures.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum { RATE_WINDOW_S = 5 };

/* The inference of one folder, shared. */
struct shared {
    struct models *models;
    struct shared *next;
    char *folder;
    struct inference *inference;
    unsigned users;
    bool is_open; /* its models are */
};

/* A model of a subscription, on its way or at work. */
struct work {
    int64_t model_id;
    char *model_name;
    void *ticket;          /* NULL: none */
    struct shared *shared; /* NULL: has not arrived */
    struct inference_feed *feed;
    struct bound *bound;
};

/* Frames a second, over the last RATE_WINDOW_S or so. */
struct rate {
    instant begin;
    unsigned count;
    double last;
};

struct bound {
    struct models *models;
    char *identifier;
    struct crop crop;
    struct work *coming, *running, *leaving; /* NULL: none */
    char last_error[BATON_ERROR_MESSAGE_MAX];
    struct latency latency;    /* from a frame's arrival to its results */
    struct rate rate, dropped; /* frames that were run; that a newer one overtook */
    UT_hash_handle hh;
};

struct models {
    struct models_config config;
    struct bound *bounds;   /* by identifier */
    struct shared *shareds; /* those that are closing, too */
    struct figures figures;
    bool is_closed;
};

/* ---- Inferences, shared --------------------------------------------------------------------- */

static void forget_shared(struct shared *shared)
{
    struct shared **at = &shared->models->shareds;

    while (*at != shared) {
        at = &(*at)->next;
    }
    *at = shared->next;
    free(shared->folder);
    free(shared);
}

static void on_closed(void *userdata)
{
    forget_shared(userdata);
}

static struct figure *figure_of(const struct work *work);

/* To one model, if several have this archive. */
static void count_failure(const struct shared *shared)
{
    for (const struct bound *bound = shared->models->bounds; bound; bound = bound->hh.next) {
        if (bound->running && bound->running->shared == shared) {
            figure_of(bound->running)->failures++;
            return;
        }
    }
}

static void on_failed(void *userdata, const struct baton_error *error)
{
    struct shared *shared = userdata;
    const struct models_config *config = &shared->models->config;

    count_failure(shared);
    log_warning(config->logger, "model-failed", LOG_STR("folder", shared->folder),
                LOG_STR("error", error->message));
    if (config->failed) {
        config->failed(config->userdata, error);
    }
}

static void on_opened(void *userdata, const char *engine, const struct baton_error *error);

static struct shared *find_shared(struct models *models, const char *folder)
{
    for (struct shared *shared = models->shareds; shared; shared = shared->next) {
        if (shared->users > 0 && strcmp(shared->folder, folder) == 0) {
            return shared;
        }
    }
    return NULL;
}

/* With one more user. */
static int share_begin(struct shared **ret, struct models *models, const char *folder,
                       struct pipeline *pipeline, struct baton_error *reterr)
{
    struct shared *shared = find_shared(models, folder);
    struct inference_config config = {.loop = models->config.loop,
                                      .engine = models->config.engine,
                                      .batch = models->config.batch,
                                      .folder = folder,
                                      .uses_stream_time = models->config.uses_stream_time,
                                      .hooks = {on_opened, on_failed, on_closed, NULL}};
    int code;

    if (!shared) {
        shared = calloc(1, sizeof(*shared));
        if (!shared || !(shared->folder = strdup(folder))) {
            free(shared);
            return error_set(reterr, BATON_ENOMEM, "out of memory");
        }
        shared->models = models;
        config.hooks.userdata = shared;
        code = inference_open(&shared->inference, pipeline, &config, reterr);
        if (code) {
            free(shared->folder);
            free(shared);
            return code;
        }
        shared->next = models->shareds;
        models->shareds = shared;
    }
    shared->users++;
    *ret = shared;
    return 0;
}

static void share_end(struct shared *shared)
{
    if (shared && --shared->users == 0) {
        inference_close(shared->inference);
    }
}

/* ---- One model of one subscription ---------------------------------------------------------- */

static struct figure *figure_of(const struct work *work)
{
    return figures_find(&work->bound->models->figures, work->model_id);
}

static uint64_t dropped_of(const struct work *work)
{
    uint64_t frames = 0;
    uint64_t dropped = 0;

    if (work && work->feed) {
        inference_feed_stats(work->feed, &frames, &dropped);
    }
    return dropped;
}

static void work_free(struct work *work)
{
    const struct models_source *source;

    if (work) {
        source = &work->bound->models->config.source;
        if (work->feed) {
            figure_of(work)->dropped += dropped_of(work);
        }
        inference_feed_free(work->feed);
        share_end(work->shared);
        if (work->ticket) {
            source->drop(source->userdata, work->ticket);
        }
        free(work->model_name);
        free(work);
    }
}

static void tell(const struct bound *bound, const struct baton_error *error)
{
    const struct models_config *config = &bound->models->config;

    if (config->changed) {
        config->changed(config->userdata, bound->identifier, error);
    }
}

/* For people: what is wrong, and what is done meanwhile. The first gives way where both are too
 * long. */
static void remember(struct bound *bound, const struct baton_error *error)
{
    const struct work *running = bound->running;
    char rest[BATON_ERROR_MESSAGE_MAX / 2];
    int bytes = running
                    ? snprintf(rest, sizeof(rest), "; model %lld (%.100s) goes on",
                               (long long)running->model_id, running->model_name)
                    : snprintf(rest, sizeof(rest), "; nothing is detected here until one opens");

    (void)snprintf(bound->last_error, sizeof(bound->last_error), "%.*s%s",
                   BATON_ERROR_MESSAGE_MAX - 1 - bytes, error->message, rest);
}

static void refuse(struct bound *bound, const struct baton_error *error)
{
    struct work *work = bound->coming;

    bound->coming = NULL;
    figure_of(work)->refused++;
    log_warning(bound->models->config.logger, "model-refused",
                LOG_STR("identifier", bound->identifier), LOG_I64("model-id", work->model_id),
                LOG_STR("model-name", work->model_name), LOG_STR("error", error->message),
                LOG_STR("running", bound->running ? bound->running->model_name : NULL));
    remember(bound, error);
    tell(bound, error);
    work_free(work);
}

/* The archive was good, and a model in it cannot be run: whoever made it can find out why, without
 * this worker. */
static void refuse_unrunnable(struct bound *bound, const struct baton_error *error)
{
    static const char advice[] =
        "check it with python3 -c \"import onnx; onnx.checker.check_model('FILE')\", then the "
        "archive with baton-detector --try CLIP --model ARCHIVE and each --engine";
    struct baton_error told = *error;

    if (error->code == BATON_EINVAL || error->code == BATON_EPROTO ||
        error->code == BATON_ECLOSED) {
        (void)error_set(&told, error->code, "%.*s; %s",
                        BATON_ERROR_MESSAGE_MAX - (int)sizeof(advice) - 80, error->message, advice);
    }
    refuse(bound, &told);
}

static double rate_of(const struct rate *rate, instant now)
{
    double seconds = (double)instant_since(now, rate->begin).ns / 1e9;

    bool is_known = rate->last > 0 && seconds <= 2 * RATE_WINDOW_S;

    return is_known ? rate->last : seconds > 0 ? rate->count / seconds : 0;
}

static void rate_add(struct rate *rate, instant now)
{
    double seconds = (double)instant_since(now, rate->begin).ns / 1e9;

    if (seconds > RATE_WINDOW_S) {
        rate->last = seconds > 2 * RATE_WINDOW_S ? 0 : rate->count / seconds;
        rate->begin = now;
        rate->count = 0;
    }
    rate->count++;
}

static void on_seen(void *userdata, const struct inference_result *result)
{
    struct work *work = userdata;
    struct bound *bound = work->bound;
    const struct models_config *config = &bound->models->config;
    struct figure *figure = figure_of(work);
    instant now = clock_now();

    figure->frames++;
    histogram_add(&figure->run, result->busy);
    histogram_add(&figure->late, instant_since(now, result->frame->captured));
    latency_add(&bound->latency, instant_since(now, result->frame->captured));
    rate_add(&bound->rate, now);
    if (config->seen) {
        config->seen(config->userdata, bound->identifier, result);
    }
    for (int i = 0; i < result->count; i++) {
        struct detection detection = {.identifier = NULL};
        if (!result->sightings[i].attributes) {
            continue;
        }
        detection = (struct detection){.identifier = strdup(bound->identifier),
                                       .model_name = strdup(work->model_name),
                                       .model_id = work->model_id,
                                       .at_unix_ms = result->frame->captured_unix_ms,
                                       .attributes = json_incref(result->sightings[i].attributes)};
        if (detection.identifier && detection.model_name) {
            config->detected(config->userdata, &detection);
        } else {
            detection_fini(&detection);
        }
    }
    if (work == bound->leaving && inference_feed_is_idle(work->feed)) {
        bound->leaving = NULL;
        work_free(work);
    }
}

static void count_opening(const struct work *work)
{
    struct figure *figure = figure_of(work);
    struct inference_stats stats;

    inference_stats(work->shared->inference, &stats);
    figure->opened++;
    figure_rename(figure, work->model_name);
    (void)snprintf(figure->engine, sizeof(figure->engine), "%s", stats.engine);
}

/* The one that comes takes over; what the old one has under way is still reported. */
static void take_over(struct bound *bound)
{
    struct work *work = bound->coming;

    work->feed = inference_feed_new(work->shared->inference, on_seen, work);
    if (!work->feed) {
        struct baton_error error = {0};
        (void)error_set(&error, BATON_EFULL, "no further subscription of that model");
        refuse(bound, &error);
        return;
    }
    count_opening(work);
    work_free(bound->leaving);
    bound->leaving = bound->running;
    bound->running = work;
    bound->coming = NULL;
    bound->last_error[0] = '\0';
    if (bound->leaving && inference_feed_is_idle(bound->leaving->feed)) {
        work_free(bound->leaving);
        bound->leaving = NULL;
    }
    log_info(bound->models->config.logger, "model-running",
             LOG_STR("identifier", bound->identifier), LOG_I64("model-id", work->model_id),
             LOG_STR("model-name", work->model_name));
    tell(bound, NULL);
}

static void on_opened(void *userdata, const char *engine, const struct baton_error *error)
{
    struct shared *shared = userdata;
    struct models *models = shared->models;
    struct bound *bound = NULL;
    struct bound *next = NULL;

    shared->is_open = !error;
    if (!error) {
        log_info(models->config.logger, "model-open", LOG_STR("folder", shared->folder),
                 LOG_STR("engine", engine));
    }
    shared->users++; /* so that it is not gone before its last user is told */
    HASH_ITER (hh, models->bounds, bound, next) {
        if (bound->coming && bound->coming->shared == shared) {
            if (error) {
                refuse_unrunnable(bound, error);
            } else {
                take_over(bound);
            }
        }
    }
    share_end(shared);
}

static void want(struct bound *bound, const struct subscription *subscription)
{
    const struct models_source *source = &bound->models->config.source;
    struct work *work = calloc(1, sizeof(*work));
    struct baton_error error = {0};

    work_free(bound->coming);
    bound->coming = NULL;
    if (work) {
        work->model_name = strdup(subscription->model_name);
    }
    if (!work || !work->model_name) {
        free(work);
        log_error(bound->models->config.logger, "model-refused",
                  LOG_STR("identifier", bound->identifier), LOG_STR("error", "out of memory"));
        return;
    }
    work->bound = bound;
    work->model_id = subscription->model_id;
    bound->coming = work;
    if (source->want(source->userdata, &work->ticket, subscription->model_url, work->model_id, work,
                     &error) != 0) {
        refuse(bound, &error);
    }
}

void models_arrived(void *asker, const char *folder, struct pipeline *pipeline,
                    const struct baton_error *error)
{
    struct work *work = asker;
    struct bound *bound = work->bound;
    struct baton_error own = {0};

    if (!error && share_begin(&work->shared, bound->models, folder, pipeline, &own) != 0) {
        error = &own;
    }
    if (pipeline) {
        pipeline_fini(pipeline);
    }
    if (error) {
        refuse(bound, error);
    } else if (work->shared->is_open) {
        take_over(bound);
    }
}

/* ---- Subscriptions -------------------------------------------------------------------------- */

static struct bound *find(const struct models *models, const char *identifier)
{
    struct bound *bound = NULL;

    HASH_FIND_STR(models->bounds, identifier, bound);
    return bound;
}

static void bound_free(struct bound *bound)
{
    HASH_DEL(bound->models->bounds, bound);
    work_free(bound->coming);
    work_free(bound->running);
    work_free(bound->leaving);
    free(bound->identifier);
    free(bound);
}

static void bound_new(struct models *models, const struct subscription *subscription)
{
    struct bound *bound = calloc(1, sizeof(*bound));

    if (!bound || !(bound->identifier = strdup(subscription->identifier))) {
        free(bound);
        log_error(models->config.logger, "model-refused",
                  LOG_STR("identifier", subscription->identifier),
                  LOG_STR("error", "out of memory"));
        return;
    }
    bound->models = models;
    bound->crop = subscription->crop;
    HASH_ADD_KEYPTR(hh, models->bounds, bound->identifier, strlen(bound->identifier), bound);
    want(bound, subscription);
}

void models_event(struct models *models, const struct worker_event *event)
{
    struct bound *bound = event->identifier ? find(models, event->identifier) : NULL;
    unsigned asks = CHANGE_MODEL;

    if (event->type == WORKER_SUBSCRIPTION_ADDED && !bound) {
        bound_new(models, event->subscription);
    } else if (event->type == WORKER_SUBSCRIPTION_REMOVED && bound) {
        bound_free(bound);
    } else if (event->type == WORKER_SUBSCRIPTION_UPDATED && bound) {
        bound->crop = event->subscription->crop;
        if (!bound->running && !bound->coming) {
            asks |= CHANGE_MODEL_URL; /* a fresh URL may mend what the last one could not */
        }
        if (event->changes & asks) {
            want(bound, event->subscription);
        }
    }
}

void models_frame(struct models *models, const char *identifier, const struct camera_frame *frame,
                  enum stage progression)
{
    struct bound *bound = find(models, identifier);
    uint64_t before;
    int rect[4];

    if (bound && bound->running) {
        image_crop_rect(&bound->crop, frame->picture.width, frame->picture.height, rect);
        before = dropped_of(bound->running);
        inference_feed_frame(bound->running->feed, frame, rect, progression);
        if (dropped_of(bound->running) > before) {
            rate_add(&bound->dropped, clock_now());
        }
    }
}

/* ---- Life ----------------------------------------------------------------------------------- */

struct models *models_new(const struct models_config *config)
{
    struct models *models = calloc(1, sizeof(*models));

    if (models) {
        models->config = *config;
    }
    return models;
}

void models_close(struct models *models)
{
    struct bound *bound = NULL;
    struct bound *next = NULL;

    HASH_ITER (hh, models->bounds, bound, next) {
        bound_free(bound);
    }
}

void models_free(struct models *models)
{
    if (models) {
        figures_fini(&models->figures);
        free(models);
    }
}

void models_measure(struct models *models, struct buffer *body)
{
    for (unsigned i = 0; i <= FIGURES_MODELS_MAX; i++) {
        models->figures.of[i].subscriptions = 0;
        models->figures.of[i].dropped_now = 0;
    }
    for (const struct bound *bound = models->bounds; bound; bound = bound->hh.next) {
        if (bound->running) {
            figure_of(bound->running)->subscriptions++;
            figure_of(bound->running)->dropped_now += dropped_of(bound->running);
        }
        if (bound->leaving) {
            figure_of(bound->leaving)->dropped_now += dropped_of(bound->leaving);
        }
    }
    figures_write(&models->figures, body);
}

void models_describe(const struct models *models, const char *identifier, json_t *ret)
{
    const struct bound *bound = find(models, identifier);
    const struct work *work = bound ? bound->running : NULL;
    struct inference_stats stats = {0};
    uint64_t frames = 0;
    uint64_t dropped = 0;
    json_t *model;

    if (!bound) {
        return;
    }
    if (work) {
        inference_stats(work->shared->inference, &stats);
        inference_feed_stats(work->feed, &frames, &dropped);
    }
    model = json_pack(
        "{s:s, s:b, s:s*, s:s*, s:I, s:i, s:i, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:s*}",
        "state",
        work && !bound->coming ? "running"
        : work                 ? "exchanging"
        : bound->coming        ? "opening"
                               : "failed",
        "shared", stats.feeds > 1, "engine", stats.engine[0] ? stats.engine : NULL, "running",
        work ? work->model_name : NULL, "running_id", (json_int_t)(work ? work->model_id : 0),
        "pid", stats.pid, "subscriptions", stats.feeds, "inferred", (json_int_t)frames, "dropped",
        (json_int_t)dropped, "failures", (json_int_t)stats.failures, "restarts",
        (json_int_t)stats.restarts, "milliseconds_a_run",
        stats.runs > 0 ? (double)stats.busy.ns / 1e6 / (double)stats.runs : 0.0, "fps",
        rate_of(&bound->rate, clock_now()), "dropped_fps", rate_of(&bound->dropped, clock_now()),
        "latency_p50_ms", latency_ms(&bound->latency, 50), "latency_p99_ms",
        latency_ms(&bound->latency, 99), "last_error",
        bound->last_error[0] ? bound->last_error : NULL);
    if (model) {
        (void)json_object_set_new(ret, "model_state", model);
    }
}

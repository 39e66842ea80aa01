#include "detector/program/models_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- One model of one subscription ---------------------------------------------------------- */

void work_free(struct work *work)
{
    const struct models_source *source;

    if (work) {
        source = &work->bound->models->config.source;
        if (work->feed) {
            work_figure(work)->dropped += work_dropped(work);
        }
        inference_feed_free(work->feed);
        shared_end(work->shared);
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

/* Keeps the error for /status, with what runs meanwhile. If both are too long, the error is cut. */
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

/* ---- Refused and running models ------------------------------------------------------------- */

void models_refuse(struct bound *bound, const struct baton_error *error)
{
    struct work *work = bound->coming;

    bound->coming = NULL;
    if (work->is_look) {
        bound->look_fails++;
        models_plan_look(bound);
    } else {
        models_plan_retry(bound);
    }
    work_figure(work)->refused++;
    log_warning(bound->models->config.logger, "model-refused",
                LOG_STR("identifier", bound->identifier), LOG_I64("model-id", work->model_id),
                LOG_STR("model-name", work->model_name), LOG_STR("error", error->message),
                LOG_STR("running", bound->running ? bound->running->model_name : NULL));
    remember(bound, error);
    tell(bound, error);
    work_free(work);
}

/* True if the archive is at fault, not a lack of memory or processes: see inference.h. */
static bool is_verdict(const struct baton_error *error)
{
    return error->code == BATON_EINVAL || error->code == BATON_EPROTO ||
           error->code == BATON_ECLOSED;
}

static void reject(const struct bound *bound, const struct baton_error *error)
{
    const struct models_source *source = &bound->models->config.source;
    const struct work *work = bound->coming;

    if (source->reject) {
        source->reject(work->is_look ? bound->running->ticket : NULL, work->ticket, error);
    }
}

/* The archive is good, but a model in it cannot run. The advice lets its author find the reason
 * without this worker; an output that fits no decoder is reason enough. */
static void refuse_unrunnable(struct bound *bound, const struct baton_error *error)
{
    static const char advice[] =
        "check it with python3 -c \"import onnx; onnx.checker.check_model('FILE')\", then the "
        "archive with baton-detector --try CLIP --model ARCHIVE and each --engine";
    struct baton_error reported = *error;

    if (is_verdict(error)) {
        reject(bound, error);
    }
    if (is_verdict(error) && error->code != BATON_EPROTO) {
        (void)error_set(&reported, error->code, "%.*s; %s",
                        BATON_ERROR_MESSAGE_MAX - (int)sizeof(advice) - 80, error->message, advice);
    }
    models_refuse(bound, &reported);
}

static void on_seen(void *userdata, const struct inference_result *result)
{
    struct work *work = userdata;
    struct bound *bound = work->bound;
    const struct models_config *config = &bound->models->config;
    struct figure *figure = work_figure(work);
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
    struct figure *figure = work_figure(work);
    struct inference_stats stats;

    inference_stats(work->shared->inference, &stats);
    figure->opened++;
    figure_rename(figure, work->model_name);
    (void)snprintf(figure->engine, sizeof(figure->engine), "%s", stats.engine);
}

/* The wanted model runs. If it is an earlier archive, the newest one is tried again later. */
static void meet(struct bound *bound, const struct work *work)
{
    const struct models_source *source = &bound->models->config.source;

    bound->is_met = work->doubt.code == 0;
    if (bound->is_met) {
        bound->refusals = bound->look_fails = 0;
        bound->last_error[0] = '\0';
        models_plan_look(bound);
        if (source->accept) {
            source->accept(bound->running->ticket);
        }
    } else {
        remember(bound, &work->doubt);
        models_plan_retry(bound);
    }
}

/* The new work takes over; frames that the old one still runs are reported. */
static void take_over(struct bound *bound)
{
    struct work *work = bound->coming;

    work->feed = inference_feed_new(work->shared->inference, on_seen, work);
    if (!work->feed) {
        struct baton_error error = {0};
        (void)error_set(&error, BATON_EFULL, "no further subscription of that model");
        models_refuse(bound, &error);
        return;
    }
    count_opening(work);
    work_free(bound->leaving);
    bound->leaving = bound->running;
    bound->running = work;
    bound->coming = NULL;
    meet(bound, work);
    if (bound->leaving && inference_feed_is_idle(bound->leaving->feed)) {
        work_free(bound->leaving);
        bound->leaving = NULL;
    }
    log_info(bound->models->config.logger, "model-running",
             LOG_STR("identifier", bound->identifier), LOG_I64("model-id", work->model_id),
             LOG_STR("model-name", work->model_name));
    tell(bound, NULL);
}

void models_opened(void *userdata, const char *engine, const struct baton_error *error)
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
    shared->users++; /* keeps it until its last user got the error */
    HASH_ITER (hh, models->bounds, bound, next) {
        if (bound->coming && bound->coming->shared == shared) {
            if (error) {
                refuse_unrunnable(bound, error);
            } else {
                take_over(bound);
            }
        }
    }
    shared_end(shared);
}

struct work *work_new(struct bound *bound)
{
    struct work *work = calloc(1, sizeof(*work));

    if (!work || !(work->model_name = strdup(bound->wanted.name))) {
        free(work);
        return NULL;
    }
    work->bound = bound;
    work->model_id = bound->wanted.model_id;
    return work;
}

/* Asks for the wanted model in place of the one that is coming. The old request is dropped
 * afterwards, so that a running fetch of the same archive continues. */
void models_ask(struct bound *bound)
{
    const struct models_source *source = &bound->models->config.source;
    struct work *before = bound->coming;
    struct work *work = work_new(bound);
    struct baton_error error = {0};

    bound->is_met = false;
    bound->retry_at = bound->look_at = INSTANT_NEVER;
    if (!work) {
        log_error(bound->models->config.logger, "model-refused",
                  LOG_STR("identifier", bound->identifier), LOG_STR("error", "out of memory"));
        if (!before) {
            models_plan_retry(bound);
        }
        return;
    }
    bound->coming = work;
    if (source->want(source->userdata, &work->ticket, bound->wanted.url, work->model_id, work,
                     &error) != 0) {
        models_refuse(bound, &error);
    }
    work_free(before);
}

/* True if the same model runs already: it keeps what it knows of objects. */
static bool runs_already(const struct bound *bound, const struct work *work)
{
    const struct work *running = bound->running;

    return running && running->shared == work->shared && running->model_id == work->model_id &&
           strcmp(running->model_name, work->model_name) == 0;
}

static void keep_running(struct bound *bound)
{
    struct work *work = bound->coming;
    void *ticket = work->ticket;

    bound->coming = NULL;
    work->ticket = bound->running->ticket; /* both are of one folder; the newer one knows more */
    bound->running->ticket = ticket;
    meet(bound, work);
    work_free(work);
}

void models_arrived(void *asker, const char *folder, struct pipeline *pipeline,
                    const struct baton_error *error)
{
    struct work *work = asker;
    struct bound *bound = work->bound;
    struct baton_error own = {0};

    if (folder && error) {
        work->doubt = *error;
        error = NULL;
    }
    if (!error && shared_begin(&work->shared, bound->models, folder, pipeline, &own) != 0) {
        error = &own;
    }
    if (pipeline) {
        pipeline_fini(pipeline);
    }
    if (error) {
        models_refuse(bound, error);
    } else if (runs_already(bound, work)) {
        keep_running(bound);
    } else if (work->shared->is_open) {
        take_over(bound);
    }
}

/* ---- Subscriptions -------------------------------------------------------------------------- */

struct bound *models_find(const struct models *models, const char *identifier)
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
    wanted_fini(&bound->wanted);
    free(bound->identifier);
    free(bound);
}

static struct bound *bound_new(struct models *models, const struct subscription *subscription)
{
    struct bound *bound = calloc(1, sizeof(*bound));

    if (!bound || !(bound->identifier = strdup(subscription->identifier))) {
        free(bound);
        return NULL;
    }
    bound->models = models;
    bound->retry_at = bound->look_at = INSTANT_NEVER;
    HASH_ADD_KEYPTR(hh, models->bounds, bound->identifier, strlen(bound->identifier), bound);
    return bound;
}

/* A fresh signature alone helps only a model that has not come yet. */
static bool is_asked(const struct bound *bound, enum wanted_change change)
{
    bool has_come = bound->is_met || (bound->coming && bound->coming->shared);

    return change == WANTED_OTHER || (change == WANTED_SIGNATURE && !has_come);
}

static void bound_set(struct bound *bound, const struct subscription *subscription)
{
    enum wanted_change change;

    bound->crop = subscription->crop;
    if (wanted_set(&bound->wanted, subscription, &change) != 0) {
        log_error(bound->models->config.logger, "model-refused",
                  LOG_STR("identifier", bound->identifier), LOG_STR("error", "out of memory"));
        return;
    }
    if (change == WANTED_OTHER) {
        bound->refusals = 0;
    }
    if (is_asked(bound, change)) {
        models_ask(bound);
    } else if (change == WANTED_SIGNATURE) {
        models_look(bound);
    }
}

/* Another camera shows other objects, even at the same places. The last frames of the old camera
 * are dropped. */
static void look_elsewhere(struct bound *bound)
{
    struct work *work = bound->running;
    struct inference_feed *feed;

    work_free(bound->leaving);
    bound->leaving = NULL;
    feed = work ? inference_feed_new(work->shared->inference, on_seen, work) : NULL;
    if (feed) {
        work_figure(work)->dropped += work_dropped(work);
        inference_feed_free(work->feed);
        work->feed = feed;
    }
}

void models_event(struct models *models, const struct worker_event *event)
{
    struct bound *bound = event->identifier ? models_find(models, event->identifier) : NULL;

    if (event->type == WORKER_SUBSCRIPTION_ADDED && !bound) {
        bound = bound_new(models, event->subscription);
        if (!bound) {
            log_error(models->config.logger, "model-refused",
                      LOG_STR("identifier", event->identifier), LOG_STR("error", "out of memory"));
            return;
        }
        bound_set(bound, event->subscription);
    } else if (event->type == WORKER_SUBSCRIPTION_REMOVED && bound) {
        bound_free(bound);
    } else if (event->type == WORKER_SUBSCRIPTION_UPDATED && bound) {
        if ((event->changes & CHANGE_CAMERA) != 0) {
            look_elsewhere(bound);
        }
        bound_set(bound, event->subscription);
    }
}

void models_frame(struct models *models, const char *identifier, const struct camera_frame *frame,
                  enum stage progression)
{
    struct bound *bound = models_find(models, identifier);
    uint64_t before;
    int rect[4];

    if (bound && bound->running) {
        image_crop_rect(&bound->crop, frame->picture.width, frame->picture.height, rect);
        before = work_dropped(bound->running);
        inference_feed_frame(bound->running->feed, frame, rect, progression);
        if (work_dropped(bound->running) > before) {
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

static void free_timer(uv_handle_t *handle)
{
    free(handle);
}

void models_close(struct models *models)
{
    struct bound *bound = NULL;
    struct bound *next = NULL;

    HASH_ITER (hh, models->bounds, bound, next) {
        bound_free(bound);
    }
    if (models->again) {
        uv_close((uv_handle_t *)models->again, free_timer);
        models->again = NULL;
    }
}

void models_free(struct models *models)
{
    if (models) {
        figures_fini(&models->figures);
        free(models);
    }
}

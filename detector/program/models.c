#include "detector/program/models_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- One model of one subscription ---------------------------------------------------------- */

static void work_free(struct work *work)
{
    if (work) {
        inference_feed_free(work->feed);
        shared_end(work->shared);
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

static void refuse(struct bound *bound, const struct baton_error *error)
{
    figures_find(&bound->models->figures, bound->model_id)->refused++;
    log_warning(bound->models->config.logger, "model-refused",
                LOG_STR("identifier", bound->identifier), LOG_I64("model-id", bound->model_id),
                LOG_STR("model-name", bound->model_name), LOG_STR("error", error->message),
                LOG_STR("running", bound->running ? bound->running->model_name : NULL));
    remember(bound, error);
    tell(bound, error);
}

/* True if the archive is at fault, not a lack of memory or processes: see inference.h. */
static bool is_verdict(const struct baton_error *error)
{
    return error->code == BATON_EINVAL || error->code == BATON_EPROTO ||
           error->code == BATON_ECLOSED;
}

/* Drops the coming model, which cannot run. The supply gives another one, or it again. */
static void drop_coming(struct bound *bound, const struct baton_error *verdict)
{
    struct work *work = bound->coming;

    bound->coming = NULL;
    supply_failed(bound->order, work->shared->model, verdict);
    work_free(work);
}

/* The archive is good, but a model in it cannot run. The advice lets its author find the reason
 * without this worker; an output that fits no decoder is reason enough. */
static void refuse_unrunnable(struct bound *bound, const struct baton_error *error)
{
    static const char advice[] =
        "check it with python3 -c \"import onnx; onnx.checker.check_model('FILE')\", then the "
        "archive with baton-detector --try CLIP --model ARCHIVE and each --engine";
    struct baton_error reported = *error;

    drop_coming(bound, is_verdict(error) ? error : NULL);
    if (is_verdict(error) && error->code != BATON_EPROTO) {
        (void)error_set(&reported, error->code, "%.*s; %s",
                        BATON_ERROR_MESSAGE_MAX - (int)sizeof(advice) - 80, error->message, advice);
    }
    refuse(bound, &reported);
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
    (void)rate_count(&bound->ran_rate, ++bound->ran, now);
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

/* The model runs that the supply gave; it may be one from before. */
static void meet(struct bound *bound, const struct baton_error *doubt)
{
    if (doubt->code != 0) {
        remember(bound, doubt);
    } else {
        bound->last_error[0] = '\0';
        supply_ran(bound->order, bound->running->shared->model);
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
        drop_coming(bound, NULL);
        refuse(bound, &error);
        return;
    }
    count_opening(work);
    work_free(bound->leaving);
    bound->leaving = bound->running;
    bound->running = work;
    bound->coming = NULL;
    meet(bound, &work->doubt);
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
        log_info(models->config.logger, "model-open", LOG_STR("digest", shared->model->digest),
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

/* A work that is neither open nor at work. */
static int work_new(struct work **ret, struct bound *bound, const struct supplied *supplied,
                    struct baton_error *reterr)
{
    struct work *work = calloc(1, sizeof(*work));
    int code;

    if (!work || !(work->model_name = strdup(bound->model_name))) {
        free(work);
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    work->bound = bound;
    work->model_id = bound->model_id;
    if (supplied->error) {
        work->doubt = *supplied->error;
    }
    code = shared_begin(&work->shared, bound->models, supplied->model, reterr);
    if (code) {
        work_free(work);
        return code;
    }
    *ret = work;
    return 0;
}

/* True if the model runs already: it keeps what it knows of objects. */
static bool runs_already(const struct bound *bound, const struct model *model)
{
    const struct work *running = bound->running;

    return running && strcmp(running->shared->model->digest, model->digest) == 0 &&
           running->model_id == bound->model_id &&
           strcmp(running->model_name, bound->model_name) == 0;
}

/* The supply has a model for the subscription, another one than before, or why it has none. */
static void on_supplied(void *userdata, const struct supplied *supplied)
{
    struct bound *bound = userdata;
    struct model *model = supplied->model;
    struct baton_error error = {0};

    bound->is_waiting = false;
    if (!model || (supplied->is_refused && runs_already(bound, model))) {
        refuse(bound, supplied->error);
        return;
    }
    work_free(bound->coming);
    bound->coming = NULL;
    if (runs_already(bound, model)) {
        meet(bound, supplied->error ? supplied->error : &error);
    } else if (work_new(&bound->coming, bound, supplied, &error) != 0) {
        supply_failed(bound->order, model, NULL);
        refuse(bound, &error);
    } else if (bound->coming->shared->is_open) {
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
    supply_cancel(bound->order);
    free(bound->model_name);
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
    HASH_ADD_KEYPTR(hh, models->bounds, bound->identifier, strlen(bound->identifier), bound);
    return bound;
}

/* Orders the wanted model in place of the one before, which runs until this one does. The old order
 * is canceled afterwards, so that a fetch of the same archive goes on. */
static void order(struct bound *bound, const char *url)
{
    struct order *before = bound->order;
    struct baton_error error = {0};
    int code;

    work_free(bound->coming);
    bound->coming = NULL;
    bound->order = NULL;
    code = supply_order(&bound->order, bound->models->config.supply, bound->model_id, url,
                        on_supplied, bound, &error);
    supply_cancel(before);
    bound->is_waiting = code == 0;
    if (code) {
        refuse(bound, &error);
    }
}

static void bound_set(struct bound *bound, const struct subscription *subscription)
{
    bool is_same = bound->order && bound->model_id == subscription->model_id &&
                   strcmp(bound->model_name, subscription->model_name) == 0 &&
                   supply_renew(bound->order, subscription->model_url);
    char *name = is_same ? NULL : strdup(subscription->model_name);

    bound->crop = subscription->crop;
    if (name) {
        free(bound->model_name);
        bound->model_name = name;
        bound->model_id = subscription->model_id;
        order(bound, subscription->model_url);
    } else if (!is_same) {
        log_error(bound->models->config.logger, "model-refused",
                  LOG_STR("identifier", bound->identifier), LOG_STR("error", "out of memory"));
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
    int rect[4];

    if (bound && bound->running) {
        image_crop_rect(&bound->crop, frame->picture.width, frame->picture.height, rect);
        if (inference_feed_frame(bound->running->feed, frame, rect, progression)) {
            work_figure(bound->running)->dropped++;
            (void)rate_count(&bound->dropped_rate, ++bound->dropped, clock_now());
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

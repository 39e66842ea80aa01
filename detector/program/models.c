#include "detector/program/models.h"

#include "detector/program/findings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* The inference of one model, shared. */
struct shared {
    struct models *models;
    struct shared *next;
    struct model *model;
    struct inference *inference;
    unsigned users;
    bool is_open; /* its models are open */
};

/* A subscription's model, being opened or at work. */
struct work {
    struct bound *bound;
    int64_t model_id;
    char model_name[PROTOCOL_NAME_MAX + 1];
    struct figure *figure; /* of that number, once it runs */
    struct shared *shared;
    struct inference_feed *feed;
    struct baton_error doubt; /* code other than 0: the reason for the model from before */
};

static void tell(const struct bound *bound, const struct baton_error *error)
{
    const struct models_config *config = &bound->models->config;

    if (config->changed) {
        config->changed(config->userdata, error);
    }
}

/* ---- Shared inferences ---------------------------------------------------------------------- */

static void on_opened(void *userdata, const struct baton_error *error);

/* If several models have this archive, the failure is counted for one and told by all. */
static void on_failed(void *userdata, const struct baton_error *error)
{
    const struct shared *shared = userdata;
    struct bound *bound = NULL;
    bool is_counted = false;

    DL_FOREACH (shared->models->bounds, bound) {
        if (bound->running && bound->running->shared == shared) {
            bound->running->figure->failures += !is_counted;
            is_counted = true;
            (void)snprintf(bound->last_error, sizeof(bound->last_error), "%s", error->message);
            tell(bound, error);
        }
    }
    log_warning(shared->models->config.logger, "model-failed",
                LOG_STR("digest", shared->model->digest), LOG_STR("error", error->message));
}

static int open_inference(struct shared *shared, struct baton_error *reterr)
{
    const struct models_config *models = &shared->models->config;
    const struct inference_config config = {.loop = models->loop,
                                            .engine = models->engine,
                                            .archive_fd = shared->model->fd,
                                            .uses_stream_time = models->uses_stream_time,
                                            .hooks = {on_opened, on_failed, shared}};

    return inference_open(&shared->inference, &config, reterr);
}

/* Adds a user. Its models may be open already. */
static int shared_begin(struct shared **ret, struct models *models, struct model *model,
                        struct baton_error *reterr)
{
    struct shared *shared = models->shareds;
    int code;

    while (shared && strcmp(shared->model->digest, model->digest) != 0) {
        shared = shared->next;
    }
    if (!shared) {
        shared = calloc(1, sizeof(*shared));
        if (!shared) {
            return error_set(reterr, BATON_ENOMEM, "out of memory");
        }
        shared->models = models;
        shared->model = model_share(model);
        code = open_inference(shared, reterr);
        if (code) {
            model_release(shared->model);
            free(shared);
            return code;
        }
        LL_PREPEND(models->shareds, shared);
    }
    shared->users++;
    *ret = shared;
    return 0;
}

static void shared_end(struct shared *shared)
{
    if (shared && --shared->users == 0) {
        inference_close(shared->inference);
        LL_DELETE(shared->models->shareds, shared);
        model_release(shared->model);
        free(shared);
    }
}

/* ---- One model of one subscription ---------------------------------------------------------- */

static void work_free(struct work **work)
{
    if (*work) {
        inference_feed_free((*work)->feed);
        shared_end((*work)->shared);
        free(*work);
        *work = NULL;
    }
}

/* What the old model still ran is reported by now, or is not. */
static void end_leaving(struct bound *bound)
{
    if (bound->leaving && inference_feed_is_idle(bound->leaving->feed)) {
        work_free(&bound->leaving);
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
    const struct subscription *wanted = bound->subscription;

    figures_find(&bound->models->figures, wanted->model_id)->refused++;
    log_warning(bound->models->config.logger, "model-refused",
                LOG_STR("identifier", wanted->identifier), LOG_I64("model-id", wanted->model_id),
                LOG_STR("model-name", wanted->model_name), LOG_STR("error", error->message),
                LOG_STR("running", bound->running ? bound->running->model_name : NULL));
    remember(bound, error);
    tell(bound, error);
}

/* True if the archive is at fault, not a lack of memory or processes: see inference.h. */
static bool is_verdict(const struct baton_error *error)
{
    return error->code == BATON_EINVAL || error->code == BATON_EPROTO ||
           error->code == BATON_ETOOBIG || error->code == BATON_ECLOSED;
}

/* The archive is none, or a model in it cannot run; the supply gives another one, or it again. The
 * advice lets a model's author find the reason without this worker; what is wrong with an archive,
 * or an output that fits no decoder, is reason enough. */
static void refuse_unrunnable(struct bound *bound, const struct baton_error *error)
{
    static const char advice[] =
        "check it with python3 -c \"import onnx; onnx.checker.check_model('FILE')\", then the "
        "archive with baton-detector --try CLIP --model ARCHIVE and each --engine";
    struct baton_error reported = *error;

    supply_failed(bound->order, bound->coming->shared->model, is_verdict(error) ? error : NULL);
    work_free(&bound->coming);
    if (error->code == BATON_EINVAL || error->code == BATON_ECLOSED) {
        (void)error_set(&reported, error->code, "%.*s; %s",
                        BATON_ERROR_MESSAGE_MAX - (int)sizeof(advice) - 80, error->message, advice);
    }
    refuse(bound, &reported);
}

static void show_boxes(const struct bound *bound, const struct inference_result *result)
{
    struct image_box boxes[IMAGE_BOXES_MAX];

    image_set_boxes((struct images *)bound->subscription, result->frame->source, boxes,
                    findings_boxes(boxes, result));
}

static void on_seen(void *userdata, const struct inference_result *result)
{
    struct work *work = userdata;
    struct bound *bound = work->bound;
    const struct models_config *config = &bound->models->config;
    struct figure *figure = work->figure;
    instant now = clock_now();
    span late = instant_since(now, result->frame->captured);

    figure->frames++;
    histogram_add(&figure->run, figures_bounds_s, result->busy);
    histogram_add(&figure->late, figures_bounds_s, late);
    latency_add(&bound->latency, late);
    (void)rate_count(&bound->ran_rate, ++bound->ran, now);
    show_boxes(bound, result);
    if (config->seen) {
        config->seen(config->userdata, result);
    }
    for (int i = 0; config->detected && i < result->count; i++) {
        struct detection detection = {.identifier = NULL};
        if (!result->sightings[i].attributes) {
            continue;
        }
        detection = (struct detection){.identifier = strdup(bound->subscription->identifier),
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
    end_leaving(bound);
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
    struct figure *figure = figures_find(&bound->models->figures, work->model_id);

    work->figure = figure;
    figure->opened++;
    memcpy(figure->name, work->model_name, sizeof(figure->name));
    (void)snprintf(figure->engine, sizeof(figure->engine), "%s",
                   inference_stats(work->shared->inference)->engine);
    work_free(&bound->leaving);
    bound->leaving = bound->running;
    bound->running = work;
    bound->coming = NULL;
    meet(bound, &work->doubt);
    end_leaving(bound);
    log_info(bound->models->config.logger, "model-running",
             LOG_STR("identifier", bound->subscription->identifier),
             LOG_I64("model-id", work->model_id), LOG_STR("model-name", work->model_name));
    tell(bound, NULL);
}

static void on_opened(void *userdata, const struct baton_error *error)
{
    struct shared *shared = userdata;
    struct models *models = shared->models;
    const struct inference_stats *stats = inference_stats(shared->inference);
    struct bound *bound = NULL;

    shared->is_open = !error;
    if (!error) {
        log_info(models->config.logger, "model-open", LOG_STR("digest", shared->model->digest),
                 LOG_STR("engine", stats->engine),
                 LOG_STR("note", stats->note[0] ? stats->note : NULL));
    }
    shared->users++; /* keeps it until its last user got the error */
    DL_FOREACH (models->bounds, bound) {
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

/* A work that gets no frame yet. */
static int work_new(struct work **ret, struct bound *bound, const struct supplied *supplied,
                    struct baton_error *reterr)
{
    struct work *work = calloc(1, sizeof(*work));
    int code;

    if (!work) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    work->bound = bound;
    work->model_id = bound->subscription->model_id;
    (void)snprintf(work->model_name, sizeof(work->model_name), "%s",
                   bound->subscription->model_name);
    if (supplied->error) {
        work->doubt = *supplied->error;
    }
    code = shared_begin(&work->shared, bound->models, supplied->model, reterr);
    if (!code) {
        work->feed = inference_feed_new(work->shared->inference, on_seen, work);
        code = work->feed ? 0 : error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    if (code) {
        work_free(&work);
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
           running->model_id == bound->subscription->model_id &&
           strcmp(running->model_name, bound->subscription->model_name) == 0;
}

/* The supply has a model for the subscription, another one than before, or why it has none. */
static void on_supplied(void *userdata, const struct supplied *supplied)
{
    struct bound *bound = userdata;
    struct model *model = supplied->model;
    struct work *before = bound->coming;
    struct baton_error error = {0};

    bound->is_waiting = false;
    if (!model || (supplied->is_refused && runs_already(bound, model))) {
        refuse(bound, supplied->error);
        return;
    }
    bound->coming = NULL;
    if (runs_already(bound, model)) {
        meet(bound, supplied->error ? supplied->error : &error);
    } else if (work_new(&bound->coming, bound, supplied, &error) != 0) {
        supply_failed(bound->order, model, NULL);
        refuse(bound, &error);
    } else if (bound->coming->shared->is_open) {
        take_over(bound);
    }
    work_free(&before); /* not sooner: it may be the same archive, which goes on being opened */
}

/* ---- Subscriptions -------------------------------------------------------------------------- */

static void bound_end(struct bound *bound)
{
    DL_DELETE(bound->models->bounds, bound);
    work_free(&bound->coming);
    work_free(&bound->running);
    work_free(&bound->leaving);
    supply_cancel(bound->order);
}

/* Orders the wanted model in place of the one before, which runs until this one does. The old order
 * is canceled afterwards, so that a fetch of the same archive goes on. */
static void order(struct bound *bound)
{
    const struct subscription *wanted = bound->subscription;
    struct order *before = bound->order;
    struct baton_error error = {0};
    int code;

    work_free(&bound->coming);
    bound->order = NULL;
    code = supply_order(&bound->order, bound->models->config.supply, wanted->model_id,
                        wanted->model_url, on_supplied, bound, &error);
    supply_cancel(before);
    bound->is_waiting = code == 0;
    if (code) {
        refuse(bound, &error);
    }
}

/* Another camera shows other objects, even at the same places. The last frames of the old camera
 * are dropped. */
static void look_elsewhere(struct bound *bound)
{
    struct work *work = bound->running;
    struct inference_feed *feed;

    work_free(&bound->leaving);
    feed = work ? inference_feed_new(work->shared->inference, on_seen, work) : NULL;
    if (feed) {
        inference_feed_free(work->feed);
        work->feed = feed;
    }
}

void models_event(struct models *models, struct bound *bound, const struct worker_event *event)
{
    if (event->type == WORKER_SUBSCRIPTION_ADDED) {
        bound->models = models;
        bound->subscription = event->subscription;
        DL_APPEND(models->bounds, bound);
        order(bound);
    } else if (event->type == WORKER_SUBSCRIPTION_REMOVED) {
        bound_end(bound);
    } else if (event->type == WORKER_SUBSCRIPTION_UPDATED) {
        if ((event->changes & CHANGE_CAMERA) != 0) {
            look_elsewhere(bound);
        }
        if (!bound->order || (event->changes & CHANGE_MODEL) != 0 ||
            !supply_renew(bound->order, bound->subscription->model_url)) {
            order(bound);
        }
    }
}

void models_frame(struct bound *bound, const struct frame *frame, enum stage progression)
{
    int rect[4];

    if (bound->running) {
        image_crop_rect(&bound->subscription->crop, frame->width, frame->height, rect);
        if (inference_feed_frame(bound->running->feed, frame, rect, progression)) {
            bound->running->figure->dropped++;
            (void)rate_count(&bound->dropped_rate, ++bound->dropped, clock_now());
        }
    }
}

/* ---- Reports -------------------------------------------------------------------------------- */

void models_measure(struct models *models, struct buffer *body)
{
    const struct bound *bound = NULL;

    for (unsigned i = 0; i <= FIGURES_MODELS_MAX; i++) {
        models->figures.of[i].subscriptions = 0;
    }
    DL_FOREACH (models->bounds, bound) {
        if (bound->running) {
            bound->running->figure->subscriptions++;
        }
    }
    figures_write(&models->figures, body);
}

static const char *state_of(const struct bound *bound)
{
    bool is_coming = bound->coming || bound->is_waiting;

    if (!bound->running) {
        return is_coming ? "opening" : "failed";
    }
    return is_coming ? "exchanging" : "running";
}

void models_describe(struct bound *bound, json_t *ret)
{
    static const struct inference_stats none;
    const struct work *work = bound->running;
    const struct inference_stats *stats = work ? inference_stats(work->shared->inference) : &none;

    /* Without memory for it, it is left out. */
    (void)json_object_set_new(
        ret, "model_state",
        json_pack(
            "{s:s, s:s*, s:s*, s:I, s:i, s:i, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:s*}",
            "state", state_of(bound), "engine", stats->engine[0] ? stats->engine : NULL, "running",
            work ? work->model_name : NULL, "running_id", (json_int_t)(work ? work->model_id : 0),
            "pid", stats->pid, "subscriptions", work ? (int)work->shared->users : 0, "inferred",
            (json_int_t)bound->ran, "dropped", (json_int_t)bound->dropped, "failures",
            (json_int_t)stats->failures, "restarts", (json_int_t)stats->restarts, "fps",
            rate_count(&bound->ran_rate, bound->ran, clock_now()), "dropped_fps",
            rate_count(&bound->dropped_rate, bound->dropped, clock_now()), "latency_p50_ms",
            latency_of(&bound->latency, 50), "latency_p99_ms", latency_of(&bound->latency, 99),
            "last_error", bound->last_error[0] ? bound->last_error : NULL));
}

/* ---- Life ----------------------------------------------------------------------------------- */

void models_close(struct models *models)
{
    while (models->bounds) {
        bound_end(models->bounds);
    }
}

#include "detector/program/models_int.h"

struct figure *work_figure(const struct work *work)
{
    return figures_find(&work->bound->models->figures, work->model_id);
}

void models_measure(struct models *models, struct buffer *body)
{
    for (unsigned i = 0; i <= FIGURES_MODELS_MAX; i++) {
        models->figures.of[i].subscriptions = 0;
    }
    for (const struct bound *bound = models->bounds; bound; bound = bound->hh.next) {
        if (bound->running) {
            work_figure(bound->running)->subscriptions++;
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

void models_describe(const struct models *models, const char *identifier, json_t *ret)
{
    struct bound *bound = models_find(models, identifier);
    const struct work *work = bound ? bound->running : NULL;
    struct inference_stats stats = {0};
    json_t *model;

    if (!bound) {
        return;
    }
    if (work) {
        inference_stats(work->shared->inference, &stats);
    }
    model = json_pack(
        "{s:s, s:b, s:s*, s:s*, s:I, s:i, s:i, s:I, s:I, s:I, s:I, s:f, s:s*}", "state",
        state_of(bound), "shared", stats.feeds > 1, "engine", stats.engine[0] ? stats.engine : NULL,
        "running", work ? work->model_name : NULL, "running_id",
        (json_int_t)(work ? work->model_id : 0), "pid", stats.pid, "subscriptions", stats.feeds,
        "inferred", (json_int_t)bound->ran, "dropped", (json_int_t)bound->dropped, "failures",
        (json_int_t)stats.failures, "restarts", (json_int_t)stats.restarts, "fps",
        rate_count(&bound->ran_rate, bound->ran, clock_now()), "last_error",
        bound->last_error[0] ? bound->last_error : NULL);
    if (model) {
        (void)json_object_set_new(ret, "model_state", model);
    }
}

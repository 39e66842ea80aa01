#include "detector/program/models_int.h"

#include <stdlib.h>

enum { LATENCIES = sizeof(((struct latency *)NULL)->ms) / sizeof(float) };

struct figure *work_figure(const struct work *work)
{
    return figures_find(&work->bound->models->figures, work->model_id);
}

void latency_add(struct latency *latency, span duration)
{
    latency->ms[latency->count++ % LATENCIES] = (float)duration.ns / 1e6F;
}

static int by_length(const void *left, const void *right)
{
    float a = *(const float *)left, b = *(const float *)right;

    return (a > b) - (a < b);
}

/* Returns the duration that `percent` of them did not exceed; 0 without any. */
static double latency_of(const struct latency *latency, unsigned percent)
{
    unsigned count = latency->count < LATENCIES ? latency->count : LATENCIES;
    struct latency sorted = *latency;

    if (count == 0) {
        return 0;
    }
    qsort(sorted.ms, count, sizeof(sorted.ms[0]), by_length);
    return (double)sorted.ms[(count * percent - 1) / 100];
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
        "{s:s, s:b, s:s*, s:s*, s:I, s:i, s:i, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:s*}",
        "state", state_of(bound), "shared", stats.feeds > 1, "engine",
        stats.engine[0] ? stats.engine : NULL, "running", work ? work->model_name : NULL,
        "running_id", (json_int_t)(work ? work->model_id : 0), "pid", stats.pid, "subscriptions",
        stats.feeds, "inferred", (json_int_t)bound->ran, "dropped", (json_int_t)bound->dropped,
        "failures", (json_int_t)stats.failures, "restarts", (json_int_t)stats.restarts, "fps",
        rate_count(&bound->ran_rate, bound->ran, clock_now()), "dropped_fps",
        rate_count(&bound->dropped_rate, bound->dropped, clock_now()), "latency_p50_ms",
        latency_of(&bound->latency, 50), "latency_p99_ms", latency_of(&bound->latency, 99),
        "last_error", bound->last_error[0] ? bound->last_error : NULL);
    if (model) {
        (void)json_object_set_new(ret, "model_state", model);
    }
}

#include "detector/program/figures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LABELS_MAX = 4096,
    LATENCIES = sizeof(((struct latency *)NULL)->ms) / sizeof(float),
};

const double figures_bounds_s[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                   0.1,   0.25,   0.5,   1,    2.5,   INFINITY};

void latency_add(struct latency *latency, span duration)
{
    latency->ms[latency->count++ % LATENCIES] = (float)duration.ns / 1e6F;
}

static int by_length(const void *left, const void *right)
{
    float a = *(const float *)left, b = *(const float *)right;

    return (a > b) - (a < b);
}

double latency_of(const struct latency *latency, unsigned percent)
{
    unsigned count = latency->count < LATENCIES ? latency->count : LATENCIES;
    struct latency sorted = *latency;

    if (count == 0) {
        return 0;
    }
    qsort(sorted.ms, count, sizeof(sorted.ms[0]), by_length);
    return (double)sorted.ms[(count * percent - 1) / 100];
}

struct figure *figures_find(struct figures *figures, int64_t model_id)
{
    for (unsigned i = 0; i < figures->count; i++) {
        if (figures->of[i].model_id == model_id) {
            return &figures->of[i];
        }
    }
    if (figures->count <= FIGURES_MODELS_MAX) {
        figures->of[figures->count++].model_id = model_id;
    }
    return &figures->of[figures->count - 1];
}

/* ---- The page ------------------------------------------------------------------------------- */

static const char gauge[] = "gauge", counter[] = "counter", histogram[] = "histogram";

static const struct family {
    const char *name, *help;
    size_t offset;
    const char *type;
} families[] = {
    {"baton_detector_model_subscriptions",
     "Subscriptions that the model looks at, with its name and engine.",
     offsetof(struct figure, subscriptions), gauge},
    {"baton_detector_model_frames_total", "Frames that went through the model.",
     offsetof(struct figure, frames), counter},
    {"baton_detector_model_opened_total", "Times that the model began to look at a subscription.",
     offsetof(struct figure, opened), counter},
    {"baton_detector_model_refused_total",
     "Times that it could not be had or opened for a subscription.",
     offsetof(struct figure, refused), counter},
    {"baton_detector_model_failures_total",
     "Times that its process was lost or a frame could not be run.",
     offsetof(struct figure, failures), counter},
    {"baton_detector_model_frames_dropped_total",
     "Frames that a newer one overtook before the model was free.",
     offsetof(struct figure, dropped), counter},
    {"baton_detector_model_run_seconds",
     "A frame's turn: from its preparation to what was seen in it.", offsetof(struct figure, run),
     histogram},
    {"baton_detector_model_latency_seconds",
     "From a frame's arrival to what was seen in it, with the wait for its turn.",
     offsetof(struct figure, late), histogram},
};

static void write_one(const struct figures *figures, const struct figure *one,
                      const struct family *family, struct buffer *body, struct buffer *labels)
{
    const void *value = (const char *)one + family->offset;
    char number[24] = "other";

    if (one != &figures->of[FIGURES_MODELS_MAX]) {
        (void)snprintf(number, sizeof(number), "%lld", (long long)one->model_id);
    }
    buffer_clear(labels);
    exposition_label(labels, "model_id", number);
    if (family->type == gauge) {
        exposition_label(labels, "model_name", one->name);
        exposition_label(labels, "engine", one->engine);
    }
    if (family->type == histogram) {
        exposition_histogram(body, family->name, buffer_text(labels), figures_bounds_s, value);
    } else {
        exposition_sample(body, family->name, buffer_text(labels),
                          (double)*(const uint64_t *)value);
    }
}

void figures_write(const struct figures *figures, struct buffer *body)
{
    struct buffer labels;

    buffer_init(&labels, LABELS_MAX);
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        exposition_family(body, families[i].name, families[i].type, families[i].help);
        for (unsigned j = 0; j < figures->count; j++) {
            write_one(figures, &figures->of[j], &families[i], body, &labels);
        }
    }
    buffer_fini(&labels);
}

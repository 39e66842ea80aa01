/* The parts of models.h: subscriptions and their models (models.c), shared inferences
 * (models_share.c), reports (models_report.c). */
#ifndef DETECTOR_PROGRAM_MODELS_INT_H
#define DETECTOR_PROGRAM_MODELS_INT_H

#include "detector/camera/pace.h"
#include "detector/program/figures.h"
#include "detector/program/models.h"

#include <uthash.h>

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
    char *model_name;
    struct shared *shared;
    struct inference_feed *feed; /* NULL: not at work yet */
    struct baton_error doubt;    /* code other than 0: the reason for the model from before */
};

/* The last durations, for percentiles. */
struct latency {
    float ms[256];
    unsigned count;
};

struct bound {
    struct models *models;
    char *identifier;
    struct crop crop;
    int64_t model_id;                        /* of the wanted model, as its name */
    char *model_name;                        /* NULL: none was wanted yet */
    struct order *order;                     /* NULL: its address is refused */
    bool is_waiting;                         /* for the first answer to the order */
    struct work *coming, *running, *leaving; /* NULL: none */
    char last_error[BATON_ERROR_MESSAGE_MAX];
    struct latency latency; /* from a frame's arrival to its results */
    uint64_t ran, dropped;  /* frames; those that a newer one replaced */
    struct rate ran_rate, dropped_rate;
    UT_hash_handle hh;
};

struct models {
    struct models_config config;
    struct bound *bounds;   /* by identifier */
    struct shared *shareds; /* with those that are closing */
    struct figures figures;
};

/* Adds a user. Its models may be open already. */
int shared_begin(struct shared **ret, struct models *models, struct model *model,
                 struct baton_error *reterr);
void shared_end(struct shared *shared); /* NULL allowed */
/* Hooks of the inference of a shared, which is `userdata`. */
void models_opened(void *userdata, const char *engine, const struct baton_error *error);

struct figure *work_figure(const struct work *work);

void latency_add(struct latency *latency, span duration);

struct bound *models_find(const struct models *models, const char *identifier);

#endif

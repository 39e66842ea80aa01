/* The parts of models.h: subscriptions and their models (models.c), repeated requests
 * (models_again.c), shared inferences (models_share.c), reports (models_report.c). */
#ifndef DETECTOR_PROGRAM_MODELS_INT_H
#define DETECTOR_PROGRAM_MODELS_INT_H

#include "detector/program/figures.h"
#include "detector/program/models.h"
#include "detector/program/wanted.h"

#include <uthash.h>

/* The inference of one folder, shared. */
struct shared {
    struct models *models;
    struct shared *next;
    char *folder;
    struct inference *inference;
    unsigned users;
    bool is_open; /* its models are open */
};

/* A subscription's model, requested or at work. */
struct work {
    int64_t model_id;
    char *model_name;
    void *ticket;          /* NULL: none */
    struct shared *shared; /* NULL: it has not arrived */
    struct inference_feed *feed;
    struct bound *bound;
    struct baton_error doubt; /* code other than 0: the reason for the archive from before */
    bool is_look;             /* a check for a newer archive than the one at work */
};

/* The last durations, for percentiles. */
struct latency {
    float ms[256];
    unsigned count;
};

/* Frames a second, over the last few seconds. */
struct rate {
    instant begin;
    unsigned count;
    double last;
};

struct bound {
    struct models *models;
    char *identifier;
    struct crop crop;
    struct wanted wanted;
    bool is_met;                             /* the wanted archive runs, and is the newest */
    unsigned refusals;                       /* in a row */
    instant retry_at;                        /* INSTANT_NEVER: there is nothing to request again */
    instant look_at;                         /* INSTANT_NEVER: the archive at work is not checked */
    unsigned look_fails;                     /* in a row */
    struct work *coming, *running, *leaving; /* NULL: none */
    char last_error[BATON_ERROR_MESSAGE_MAX];
    struct latency latency;    /* from a frame's arrival to its results */
    struct rate rate, dropped; /* frames that ran; frames that a newer one replaced */
    UT_hash_handle hh;
};

struct models {
    struct models_config config;
    struct bound *bounds;   /* by identifier */
    struct shared *shareds; /* with those that are closing */
    struct figures figures;
    uv_timer_t *again; /* NULL: not needed yet; freed when it is closed */
};

struct work *work_new(struct bound *bound); /* for the wanted model; NULL: out of memory */
void work_free(struct work *work);          /* NULL allowed */

/* Requests the wanted archive, in place of one that was requested before. */
void models_ask(struct bound *bound);
/* Drops the requested archive; the one at work goes on. */
void models_refuse(struct bound *bound, const struct baton_error *error);

/* The archive was refused, or is the one from before. */
void models_plan_retry(struct bound *bound);
/* The wanted archive runs, or a check is over. */
void models_plan_look(struct bound *bound);
/* Checks now, if the wanted archive runs. */
void models_look(struct bound *bound);

/* Adds a user. Its models may be open already. */
int shared_begin(struct shared **ret, struct models *models, const char *folder,
                 struct pipeline *pipeline, struct baton_error *reterr);
void shared_end(struct shared *shared); /* NULL allowed */
/* Hooks of the inference of a shared, which is `userdata`. */
void models_opened(void *userdata, const char *engine, const struct baton_error *error);

struct figure *work_figure(const struct work *work);
uint64_t work_dropped(const struct work *work); /* NULL allowed */

void rate_add(struct rate *rate, instant now);
void latency_add(struct latency *latency, span duration);

struct bound *models_find(const struct models *models, const char *identifier);

#endif

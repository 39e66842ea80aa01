/* Inside of models: subscriptions and what they want (models.c), what is asked for once more
 * (models_again.c), inferences that they share (models_share.c), what is said of them
 * (models_report.c). */
#ifndef DETECTOR_PROGRAM_MODELS_INT_H
#define DETECTOR_PROGRAM_MODELS_INT_H

#include "detector/infer/latency.h"
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
    struct baton_error doubt; /* code not 0: why it is the archive from before */
    bool is_look;             /* whether there is something newer than what runs */
};

/* Frames a second, over the last few. */
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
    bool is_met;                             /* what is wanted runs, and is the newest to be had */
    unsigned refusals;                       /* in a row */
    instant retry_at;                        /* INSTANT_NEVER: nothing is to be asked again */
    instant look_at;                         /* INSTANT_NEVER: what runs is not looked after */
    unsigned look_fails;                     /* in a row */
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
    uv_timer_t *again; /* NULL: not needed yet; freed when it is closed */
};

struct work *work_new(struct bound *bound); /* for what is wanted; NULL: out of memory */
void work_free(struct work *work);          /* NULL allowed */

/* Asks for what is wanted; it takes the place of what is on its way. */
void models_ask(struct bound *bound);
/* What is on its way is none; what runs goes on. */
void models_refuse(struct bound *bound, const struct baton_error *error);

/* It was refused, or is from before. */
void models_plan_retry(struct bound *bound);
/* What is wanted runs, or a look at it is over. */
void models_plan_look(struct bound *bound);
/* Looks now, if what is wanted runs. */
void models_look(struct bound *bound);

/* With one more user. Its models may be open already. */
int shared_begin(struct shared **ret, struct models *models, const char *folder,
                 struct pipeline *pipeline, struct baton_error *reterr);
void shared_end(struct shared *shared); /* NULL allowed */
/* Told by the inference of a shared, which is `userdata`. */
void models_opened(void *userdata, const char *engine, const struct baton_error *error);

struct figure *work_figure(const struct work *work);
uint64_t work_dropped(const struct work *work); /* NULL allowed */

void rate_add(struct rate *rate, instant now);

struct bound *models_find(const struct models *models, const char *identifier);

#endif

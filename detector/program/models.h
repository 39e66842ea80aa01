/* The pipelines that a worker's subscriptions want: opened, shared, exchanged and closed as they
 * change.
 *
 *   service's `changed` ─▶ models_event ─▶ source.want ─▶ archive's folder, pipeline
 *   watch's frame ─▶ models_frame ─▶ feed of the subscription ─▶ inference of that folder
 *   service_detected ◀─ hooks.detected ◀───────────────────────┘
 *
 * Subscriptions whose archives are the same folder share one inference, so one child and one copy
 * of the models. What is new runs beside what is old until its models are open; then the frames go
 * there, and what the old one has under way is still reported. What is bad is told, and the old
 * one goes on; what could not be had is asked for again, after pauses that grow, and at once when
 * another URL is named. What runs is looked after where it came from, in the same way: what is new
 * there is exchanged for it, and if that is bad, it goes on until there is something else.
 */
#ifndef DETECTOR_PROGRAM_MODELS_H
#define DETECTOR_PROGRAM_MODELS_H

#include "base/buffer.h"
#include "base/log.h"
#include "detector/infer/inference.h"
#include "detector/worker.h"

struct models; /* opaque; on the loop's thread */

/* Where archives come from. */
struct models_source {
    /* Answers once through models_arrived(), never from within; or fails at once. */
    int (*want)(void *userdata, void **ret_ticket, const char *url, int64_t model_id, void *asker,
                struct baton_error *reterr);
    /* Whether there is something newer than what the answered ticket `held` has; that one is kept
     * until this is answered, or dropped. Answers once, never from within, through models_arrived()
     * if there is, else through one of the two below. BATON_ENOTSUP: it cannot be told of this one.
     * NULL: archives stay as they are. */
    int (*look)(void *userdata, void **ret_ticket, const char *url, void *held, void *asker,
                struct baton_error *reterr);
    /* What the answered ticket has runs; or it cannot, and is not brought again, to others neither,
     * as long as there is one that ran before it. `held`: of the look() that brought it, or NULL.
     * NULL, both: nobody is told. */
    void (*accept)(void *ticket);
    void (*reject)(void *held, void *ticket, const struct baton_error *error);
    /* The folder is not needed any more, and no answer either. May be called from within the
     * answer. */
    void (*drop)(void *userdata, void *ticket);
    void *userdata;
};

/* The answer to want(). `folder` is there until the ticket is dropped; what `pipeline` owns is
 * taken. `error` NULL: all is well; with a folder: it is the one from before, for that reason, and
 * will be asked for again. */
void models_arrived(void *asker, const char *folder, struct pipeline *pipeline,
                    const struct baton_error *error);

/* The other answers to look(): nothing has changed since the last one; something has and is no
 * archive (`is_bad`), or it could not be asked, for that reason. */
void models_unchanged(void *asker);
void models_look_failed(void *asker, bool is_bad, const struct baton_error *error);

struct models_config {
    uv_loop_t *loop;
    struct logger *logger; /* borrowed; NULL: silent */
    struct models_source source;
    struct remote_options engine; /* texts are borrowed */
    int batch;                    /* see inference_config */
    bool uses_stream_time;        /* see inference_config */
    int retry_min_ms;             /* until what was refused is asked for again; 0: 5 s */
    int recheck_ms; /* between two looks at what runs, or up to half as long; 0: by fresh URLs only
                     */
    /* Takes the detection. */
    void (*detected)(void *userdata, struct detection *detection);
    /* May be NULL, all of them. A model is at work, or was refused; what is seen in each frame; an
     * inference failed, and goes on. They must not call back in. */
    void (*changed)(void *userdata, const char *identifier, const struct baton_error *error);
    void (*seen)(void *userdata, const char *identifier, const struct inference_result *result);
    void (*failed)(void *userdata, const struct baton_error *error);
    void *userdata;
};

struct models *models_new(const struct models_config *config); /* NULL: out of memory */
/* No detection comes any more. Then run the loop, then free. */
void models_close(struct models *models);
void models_free(struct models *models); /* NULL allowed */

/* From now on: see models_config. */
void models_set_recheck(struct models *models, int recheck_ms);

void models_event(struct models *models, const struct worker_event *event);
void models_frame(struct models *models, const char *identifier, const struct camera_frame *frame,
                  enum stage progression);

/* What /status says of the subscription's model, added to `ret`. */
void models_describe(const struct models *models, const char *identifier, json_t *ret);

/* Adds what /metrics says of models. */
void models_measure(struct models *models, struct buffer *body);

#endif

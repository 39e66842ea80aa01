/* The pipelines of a worker's subscriptions, opened, shared, exchanged and closed as these change.
 *
 *   service's `changed` ─▶ models_event ─▶ source.want ─▶ archive's folder, pipeline
 *   watch's frame ─▶ models_frame ─▶ feed of the subscription ─▶ inference of that folder
 *   service_detected ◀─ hooks.detected ◀───────────────────────┘
 *
 * Subscriptions whose archives are the same folder share one inference, so one child and one copy
 * of the models. A new inference runs beside the old one until its models are open; then it gets
 * the frames, and results that the old one has under way are still reported. A bad archive is
 * reported, and the old inference goes on. An archive that could not be fetched is requested again,
 * after pauses that grow, and at once when another URL is named. For models at work the source is
 * asked for newer archives, too: a newer one is exchanged for the old one, and if it is bad, the
 * old one goes on until there is another.
 */
#ifndef DETECTOR_PROGRAM_MODELS_H
#define DETECTOR_PROGRAM_MODELS_H

#include "base/buffer.h"
#include "base/log.h"
#include "detector/infer/inference.h"
#include "detector/worker.h"

struct models; /* opaque; on the loop's thread */

/* The source of archives. */
struct models_source {
    /* Answers once through models_arrived(), never from within, unless it fails at once. */
    int (*want)(void *userdata, void **ret_ticket, const char *url, int64_t model_id, void *asker,
                struct baton_error *reterr);
    /* Checks for a newer archive than that of the answered ticket `held`, which is kept until the
     * answer, or dropped. Answers once, never from within, through models_arrived() if there is
     * one, else through one of the two below. Returns BATON_ENOTSUP if it cannot check this one.
     * NULL: archives stay as they are. */
    int (*look)(void *userdata, void **ret_ticket, const char *url, void *held, void *asker,
                struct baton_error *reterr);
    /* The archive of the answered ticket runs; or it cannot run, and is not given again, not to
     * other subscriptions either, as long as there is one that ran before it. `held` is the ticket
     * of the look() that gave it, or NULL. Both may be NULL: they are not called. */
    void (*accept)(void *ticket);
    void (*reject)(void *held, void *ticket, const struct baton_error *error);
    /* The folder and an answer are not needed any more. May be called from within the answer. */
    void (*drop)(void *userdata, void *ticket);
    void *userdata;
};

/* The answer to want(). `folder` exists until the ticket is dropped; the content of `pipeline` is
 * taken. Without `error` the archive is the wanted one; with a folder and an error it is the one
 * from before, for that reason, and the wanted one will be requested again. */
void models_arrived(void *asker, const char *folder, struct pipeline *pipeline,
                    const struct baton_error *error);

/* The other answers to look(): nothing has changed since the last one; a changed archive is none
 * (`is_bad`), or the source did not answer, for that reason. */
void models_unchanged(void *asker);
void models_look_failed(void *asker, bool is_bad, const struct baton_error *error);

struct models_config {
    uv_loop_t *loop;
    struct logger *logger; /* borrowed; NULL: silent */
    struct models_source source;
    struct engine_options engine; /* texts are borrowed */
    bool uses_stream_time;        /* see inference_config */
    int retry_min_ms;             /* until a refused archive is requested again; 0: 5 s */
    int recheck_ms; /* between two checks of the models at work, or up to half as long; 0: only with
                       fresh URLs */
    /* Takes the detection. */
    void (*detected)(void *userdata, struct detection *detection);
    /* All of these may be NULL: a model is at work, or was refused; objects seen in each frame; an
     * inference failed, and goes on. They must not call models.h. */
    void (*changed)(void *userdata, const char *identifier, const struct baton_error *error);
    void (*seen)(void *userdata, const char *identifier, const struct inference_result *result);
    void (*failed)(void *userdata, const struct baton_error *error);
    void *userdata;
};

struct models *models_new(const struct models_config *config); /* NULL: out of memory */
/* Ends the detections. Then run the loop, then free. */
void models_close(struct models *models);
void models_free(struct models *models); /* NULL allowed */

/* Sets the values from now on: see models_config. */
void models_set_recheck(struct models *models, int recheck_ms);

void models_event(struct models *models, const struct worker_event *event);
void models_frame(struct models *models, const char *identifier, const struct camera_frame *frame,
                  enum stage progression);

/* Adds the fields of the subscription's model to `ret`, for /status. */
void models_describe(const struct models *models, const char *identifier, json_t *ret);

/* Adds the families of models to /metrics. */
void models_measure(struct models *models, struct buffer *body);

#endif

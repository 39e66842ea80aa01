/* The pipelines of a worker's subscriptions, opened, shared, exchanged and closed as these change.
 *
 *   service's `changed` ─▶ models_event ─▶ supply_order ─▶ model: its pipeline, its files
 *   watch's frame ─▶ models_frame ─▶ feed of the subscription ─▶ inference of that model
 *   worker_detected  ◀─ hooks.detected ◀───────────────────────┘
 *
 * The supply says which model a subscription gets, and when it gets another (supply.h).
 * Subscriptions whose models are the same archive share one inference, so one child and one copy
 * of the models. A new inference runs beside the old one until its models are open; then it gets
 * the frames, and results that the old one has under way are still reported. A model that cannot
 * run is reported, and the old inference goes on.
 */
#ifndef DETECTOR_PROGRAM_MODELS_H
#define DETECTOR_PROGRAM_MODELS_H

#include "base/buffer.h"
#include "base/log.h"
#include "detector/infer/inference.h"
#include "detector/model/supply.h"
#include "detector/worker.h"

struct models; /* opaque; on the loop's thread */

struct models_config {
    uv_loop_t *loop;
    struct logger *logger;        /* borrowed; NULL: silent */
    struct supply *supply;        /* borrowed; it is closed after the models */
    struct engine_options engine; /* texts are borrowed */
    bool uses_stream_time;        /* see inference_config */
    /* Takes the detection; may be NULL. */
    void (*detected)(void *userdata, struct detection *detection);
    /* Both may be NULL, and must not call models.h: a model is at work, was refused, or failed and
     * goes on; objects seen in each frame. */
    void (*changed)(void *userdata, const char *identifier, const struct baton_error *error);
    void (*seen)(void *userdata, const char *identifier, const struct inference_result *result);
    void *userdata;
};

struct models *models_new(const struct models_config *config); /* NULL: out of memory */
/* Ends the detections. Then run the loop, then free. */
void models_close(struct models *models);
void models_free(struct models *models); /* NULL allowed */

void models_event(struct models *models, const struct worker_event *event);
void models_frame(struct models *models, const char *identifier, const struct frame *frame,
                  enum stage progression);

/* Adds the fields of the subscription's model to `ret`, for /status. */
void models_describe(const struct models *models, const char *identifier, json_t *ret);

/* Adds the families of models to /metrics. */
void models_measure(struct models *models, struct buffer *body);

#endif

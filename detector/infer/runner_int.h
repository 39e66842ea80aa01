/* The parts of the runner: opening models (runner.c), frames (frame.c), outputs (answer.c). */
#ifndef DETECTOR_INFER_RUNNER_INT_H
#define DETECTOR_INFER_RUNNER_INT_H

#include "detector/infer/fields.h"
#include "detector/infer/input.h"
#include "detector/infer/patience.h"
#include "detector/infer/runner.h"

enum { RUNNER_OBJECTS_MAX = TRACK_BOXES_MAX, RUNNER_TEXT_MAX = 1024 };

_Static_assert(RUNNER_SIGHTINGS_MAX >= RUNNER_OBJECTS_MAX + PATIENCE_MAX, "all can be reported");

/* A known object is kept with this share of the confidence that a new one needs. */
#define RUNNER_LOW 0.5F

/* An object of a stage from the frame, while its frame runs. */
struct object {
    size_t stage;
    struct box box;
    uint64_t track;
    bool is_due;
    bool is_incomplete; /* a further stage was run and gave no answer */
    json_t *attributes;
};

/* A result of a stage that a later one may get. */
struct part {
    int object;
    struct box box;
};

struct parts {
    struct part all[RUNNER_OBJECTS_MAX];
    int count;
};

/* A model's result for one picture. Boxes are sorted, best first. */
struct answer {
    struct box boxes[BOXES_MAX];
    int box_count; /* at least 1 for a result: the whole cut, for a model without boxes */
    struct reading reading;
    const float *numbers;
    size_t number_count;
    float confidence;
};

/* A frame on its way through the stages. */
struct run {
    struct runner *runner;
    const struct runner_turn *turn;
    struct object objects[RUNNER_OBJECTS_MAX];
    int object_count;
    struct parts parts[PIPELINE_STAGES_MAX];
};

struct runner {
    const struct pipeline *pipeline;
    struct session *sessions[PIPELINE_MODELS_MAX];
    struct input_maker *maker;
    int batch; /* frames at once */
    struct runner_stats stats;
    struct answer answer;
    struct run runs[RUNNER_BATCH];
};

struct runner_view {
    struct tracker *trackers[PIPELINE_STAGES_MAX]; /* of stages from the frame */
    struct patience patience;
};

/* Reads the result for the picture at `picture` from the outputs of `pictures` pictures; it was
 * `fit` into the input. Boxes are above `score_min`. */
int answer_read(struct answer *ret, const struct pipeline_model *model,
                const struct tensor *outputs, int output_count, int64_t pictures, int64_t picture,
                const struct fit *fit, float score_min, struct baton_error *reterr);

/* Checks that the outputs of one picture have the form of such a model's, with any content. */
int answer_prove(const struct pipeline_model *model, const struct tensor *outputs, int output_count,
                 struct baton_error *reterr);

#endif

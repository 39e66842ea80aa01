/* The parts of the runner: opening models (runner.c), frames (frame.c). */
#ifndef DETECTOR_INFER_RUNNER_INT_H
#define DETECTOR_INFER_RUNNER_INT_H

#include "detector/infer/decoder.h"
#include "detector/infer/fields.h"
#include "detector/infer/input.h"
#include "detector/infer/report.h"
#include "detector/infer/runner.h"

enum { RUNNER_OBJECTS_MAX = TRACK_BOXES_MAX };

/* A known object is kept with this share of the confidence that a new one needs. */
#define RUNNER_LOW 0.5F

/* An object of a stage from the frame, while its frame runs. */
struct object {
    size_t stage;
    struct box box;
    struct track *track; /* NULL: not tracked */
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
    struct picture_scaler scaler;
    uint64_t runs; /* of models */
    struct answer answer;
    struct run run;
};

struct runner_view {
    struct tracker *trackers[PIPELINE_STAGES_MAX]; /* of stages from the frame */
};

#endif

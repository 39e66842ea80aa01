/* Engines, models and pipelines for the tests of this folder. */
#ifndef TESTS_DETECTOR_INFER_STAND_H
#define TESTS_DETECTOR_INFER_STAND_H

#include "detector/infer/engine.h"
#include "detector/model/pipeline.h"

enum { RED, GREEN, BLUE, COLOURS };

/* Opens a model of tests/models; the caller closes the file. */
int stand_model(const char *name);

/* Of pipeline.json, before it is read. */
struct change {
    const char *path; /* "stages.1.name" */
    const char *json; /* NULL: it goes */
};

/* pipeline.json, which has rectangles, the brand of each by its colour and the text on each, with
 * the changes, one after the other, until a path is NULL. For pipeline_fini(). */
struct pipeline stand_pipeline(const struct change *changes);

bool stand_is_onnxruntime(const struct engine *engine);

#endif

/* Engines, models and pipelines for the tests of this folder. */
#ifndef TESTS_DETECTOR_INFER_STAND_H
#define TESTS_DETECTOR_INFER_STAND_H

#include "detector/infer/engine.h"
#include "detector/model/pipeline.h"
#include "unit/detector_model/zip_maker.h"

enum { RED, GREEN, BLUE, COLOURS };

/* A model of tests/models, under that name. Its bytes are a copy that stays. */
struct zip_part stand_model(const char *name);

/* An archive of that pipeline.json and these models; the caller closes the file. */
int stand_archive(const char *text, const struct zip_part *models, size_t count);

/* Of pipeline.json, before it is read. */
struct change {
    const char *path; /* "stages.1.name" */
    const char *json; /* NULL: it goes */
};

/* pipeline.json, which has rectangles, the brand of each by its colour and the text on each, with
 * the changes, one after the other, until a path is NULL. For free(), and for pipeline_fini(). */
char *stand_text(const struct change *changes);
struct pipeline stand_pipeline(const struct change *changes);

bool stand_is_onnxruntime(const struct engine *engine);

#endif

/* A pipeline of one detector of rectangles, as one that was read would be. */
#ifndef TESTS_DETECTOR_INFER_MADE_PIPELINE_H
#define TESTS_DETECTOR_INFER_MADE_PIPELINE_H

#include "detector/model/pipeline.h"

/* `file`: of the model. Objects are tracked and reported once, as {"colour": …}; for
 * pipeline_fini(). */
struct pipeline made_pipeline(const char *file);

#endif

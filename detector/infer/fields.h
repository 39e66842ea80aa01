/* Converts the results of a model to fields of the flat `detection` object. Pure. */
#ifndef DETECTOR_INFER_FIELDS_H
#define DETECTOR_INFER_FIELDS_H

#include "detector/infer/decoder.h"

#include <jansson.h>

struct finding {
    const char *class_name;        /* NULL: none */
    float confidence;              /* 0 to 1 */
    const struct reading *reading; /* NULL: nothing was read */
    const float *numbers;          /* of a plain tensor; NULL: none */
    size_t number_count;
    const struct box *box; /* NULL: none */
    uint64_t track;        /* 0: none */
};

/* Adds each of the stage's fields that the finding has a value for, unless `attributes` has it.
 * Numbers are rounded to their precision. Returns BATON_ENOMEM. */
int fields_fill(json_t *attributes, const struct pipeline_stage *stage,
                const struct finding *finding);

/* Adds to `names` the fields of the stage that name something (class, text). If they are others,
 * the object has changed. */
void fields_names(json_t *names, const json_t *attributes, const struct pipeline_stage *stage);

#endif

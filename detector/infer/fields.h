/* From what a model found to the fields of the flat `detection` object. Pure. */
#ifndef DETECTOR_INFER_FIELDS_H
#define DETECTOR_INFER_FIELDS_H

#include "detector/infer/boxes.h"
#include "detector/infer/letters.h"
#include "detector/model/pipeline.h"

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

/* Adds each of the stage's fields that the finding has a value for and that `attributes` does not
 * have yet. Numbers are rounded to what they can tell. BATON_ENOMEM. */
int fields_fill(json_t *attributes, const struct pipeline_stage *stage,
                const struct finding *finding);

/* What of the attributes is a change if it is another: all of the stage's fields that name
 * something (class, text), as one text after what `text` has already. Cut at its end. */
void fields_text(char *text, size_t text_bytes, const json_t *attributes,
                 const struct pipeline_stage *stage);

#endif

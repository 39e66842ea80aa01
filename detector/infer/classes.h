/* From the numbers that a classifier gives to its best classes. Pure. */
#ifndef DETECTOR_INFER_CLASSES_H
#define DETECTOR_INFER_CLASSES_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum class_scores {
    CLASS_SCORES_ANY,           /* probabilities if they look like it, else logits */
    CLASS_SCORES_LOGITS,        /* softmax makes them probabilities */
    CLASS_SCORES_PROBABILITIES, /* as they are */
};

struct class_score {
    int label; /* from 0 */
    float score;
};

/* False: one of them is NaN, so what the model computed is lost, and a softmax over the rest would
 * make it look sure. */
bool classes_are_numbers(const float *values, size_t count);

/* The best `max` of `count` classes, best first; of equals the first. Returns how many. NaN is no
 * score. BATON_EINVAL: there is none at all. */
int classes_decode(struct class_score *ret, int max, const float *values, size_t count,
                   enum class_scores kind, struct baton_error *reterr);

#endif

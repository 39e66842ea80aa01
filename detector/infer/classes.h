/* Finds a classifier's best classes in its output. Pure. */
#ifndef DETECTOR_INFER_CLASSES_H
#define DETECTOR_INFER_CLASSES_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum class_scores {
    CLASS_SCORES_ANY,           /* probabilities if the numbers look like it, else logits */
    CLASS_SCORES_LOGITS,        /* softmax makes them probabilities */
    CLASS_SCORES_PROBABILITIES, /* as they are */
};

struct class_score {
    int label; /* from 0 */
    float score;
};

/* False if one of them is NaN: then the model's result is lost, and a softmax over the rest would
 * look certain. */
bool classes_are_numbers(const float *values, size_t count);

/* Finds the best `max` of `count` classes, best first; of equal ones the first. Returns how many.
 * NaN is no score. Returns BATON_EINVAL if there is no score at all. */
int classes_decode(struct class_score *ret, int max, const float *values, size_t count,
                   enum class_scores kind, struct baton_error *reterr);

#endif

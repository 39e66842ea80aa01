#include "detector/infer/classes.h"

#include <math.h>

/* Half-precision exports sum to 1 only roughly. */
static const double SUM_TOLERANCE = 0.02;

bool classes_are_numbers(const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (isnan(values[i])) {
            return false;
        }
    }
    return true;
}

static bool are_probabilities(const float *values, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++) {
        if (!(values[i] >= 0 && values[i] <= 1)) {
            return false;
        }
        sum += (double)values[i];
    }
    return fabs(sum - 1) <= SUM_TOLERANCE;
}

/* The divisor of softmax. The largest value is subtracted first, so that nothing overflows. */
static double softmax_sum(const float *values, size_t count, float largest)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++) {
        /* The largest value gives exp(0); if it is infinite, the difference would be NaN. */
        sum += isnan(values[i]) ? 0 : values[i] == largest ? 1 : exp((double)(values[i] - largest));
    }
    return sum;
}

/* Inserts the class by its score and returns the new number of classes. */
static int insert(struct class_score *ret, int filled, int max, int label, float score)
{
    int at = filled;

    if (at == max) {
        if (!(score > ret[max - 1].score)) {
            return filled;
        }
        at = max - 1;
    }
    for (; at > 0 && score > ret[at - 1].score; at--) {
        ret[at] = ret[at - 1];
    }
    ret[at] = (struct class_score){label, score};
    return filled < max ? filled + 1 : filled;
}

int classes_decode(struct class_score *ret, int max, const float *values, size_t count,
                   enum class_scores kind, struct baton_error *reterr)
{
    bool takes_softmax = kind == CLASS_SCORES_LOGITS ||
                         (kind == CLASS_SCORES_ANY && !are_probabilities(values, count));
    float largest = 0;
    double sum;
    int filled = 0;

    for (size_t i = 0; i < count && max > 0; i++) {
        if (!isnan(values[i])) {
            filled = insert(ret, filled, max, (int)i, values[i]);
        }
    }
    if (filled == 0) {
        return error_set(reterr, BATON_EINVAL, "none of the classifier's %zu numbers is a score",
                         count);
    }
    if (takes_softmax) {
        largest = ret[0].score;
        sum = softmax_sum(values, count, largest);
        for (int i = 0; i < filled; i++) {
            double power = ret[i].score == largest ? 1 : exp((double)(ret[i].score - largest));
            ret[i].score = (float)(power / sum);
        }
    }
    return filled;
}

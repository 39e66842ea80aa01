/* A classifier: [batch, C], a score for each class of the whole picture. */
#include "detector/infer/decoder.h"

static bool fits(const struct outputs *outputs)
{
    struct tensor one;
    size_t count;

    return output_of_picture(&one, outputs) && shape_numbers(&one.shape, &count) &&
           count == outputs->model->class_count;
}

static int read(struct answer *ret, const struct outputs *outputs, struct baton_error *reterr)
{
    struct tensor one;
    float score = 0;
    int label = output_of_picture(&one, outputs)
                    ? best_class(one.values, 0, outputs->model->class_count, 1, &score)
                    : -1;

    if (label < 0) {
        return error_set(reterr, BATON_EINVAL, "one of the classifier's %zu numbers is NaN",
                         outputs->model->class_count);
    }
    if (score >= outputs->score_min) {
        answer_say(ret, outputs, label, score);
    }
    return 0;
}

const struct decoder decode_classify = {
    .before = "[batch, ", .after = "]", .fits = fits, .read = read};

/* A classifier: [batch, C], a score for each class of the whole picture. */
#include "detector/infer/decoder.h"

static int read(struct answer *ret, const struct outputs *outputs, struct baton_error *reterr)
{
    size_t classes = outputs->model->class_count;
    struct tensor one;
    float score = 0;
    int label;

    if (!output_of_picture(&one, outputs) || shape_numbers(&one.shape) != (int64_t)classes) {
        return BATON_EPROTO;
    }
    if (!ret) {
        return 0;
    }
    label = best_class(one.values, 0, classes, 1, &score);
    if (label < 0) {
        return error_set(reterr, BATON_EINVAL, "one of the classifier's %zu numbers is NaN",
                         classes);
    }
    if (score >= outputs->score_min) {
        answer_say(ret, outputs, label, score);
    }
    return 0;
}

const struct decoder decode_classify = {.before = "[batch, ", .after = "]", .read = read};

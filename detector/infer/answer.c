/* Reads a model's outputs, for each kind of model. */
#include "detector/infer/runner_int.h"

/* The part of the first output that belongs to one of several pictures. */
static int one_of(struct tensor *ret, const struct tensor *output, int output_count,
                  int64_t pictures, int64_t picture, struct baton_error *reterr)
{
    struct tensor one;
    size_t count;

    if (output_count < 1) {
        return error_set(reterr, BATON_EINVAL, "no output");
    }
    one = *output;
    if (!shape_numbers(&output->shape, &count) ||
        (pictures > 1 && (one.shape.rank < 1 || one.shape.sides[0] != pictures))) {
        char text[SHAPE_TEXT_MAX];
        return error_set(reterr, BATON_EINVAL, "an output of %s for %lld pictures",
                         shape_text(&output->shape, text), (long long)pictures);
    }
    if (pictures > 1) {
        one.shape.sides[0] = 1;
        one.values += count / (size_t)pictures * (size_t)picture;
    }
    *ret = one;
    return 0;
}

static struct box_rules rules_of(const struct pipeline_model *model, float score_min)
{
    return (struct box_rules){.head = model->decoder == DECODER_YOLOV5 ? BOX_HEAD_YOLOV5
                                                                       : BOX_HEAD_YOLOV8,
                              .classes = (int)model->class_count,
                              .score_min = score_min,
                              .overlap_max = model->nms};
}

/* A model may have further outputs, such as those before its head: the last output that fits
 * counts. The error names the first one. */
static int find_boxes(struct box_layout *ret, const struct tensor *outputs, int output_count,
                      int64_t picture, const struct box_rules *rules, struct baton_error *reterr)
{
    int code = BATON_EINVAL;

    for (int at = output_count - 1; at >= 0; at--) {
        code = box_layout(ret, &outputs[at].shape, rules, reterr);
        if (!code && (size_t)picture < ret->batch) {
            return at;
        }
    }
    return code ? code : error_set(reterr, BATON_EINVAL, "an output of too few pictures");
}

static int read_boxes(struct answer *ret, const struct pipeline_model *model,
                      const struct tensor *outputs, int output_count, int64_t picture,
                      const struct fit *fit, float score_min, struct baton_error *reterr)
{
    const struct box_rules rules = rules_of(model, score_min);
    struct box_layout layout;
    int at = find_boxes(&layout, outputs, output_count, picture, &rules, reterr);

    if (at < 0) {
        return at;
    }
    ret->box_count = boxes_decode(ret->boxes, BOXES_MAX, outputs[at].values, &layout,
                                  (size_t)picture, &rules, fit, reterr);
    if (ret->box_count < 0) {
        at = ret->box_count;
        ret->box_count = 0;
        return at;
    }
    ret->confidence = ret->box_count > 0 ? ret->boxes[0].score : 0;
    letters_of_boxes(&ret->reading,
                     &(struct letters){model->classes, model->class_count, model->blank},
                     ret->boxes, ret->box_count);
    return 0;
}

/* The answer of a model without boxes is about the whole picture. */
static void say(struct answer *answer, const struct fit *fit, int label, float confidence)
{
    const int *source = fit->source;

    answer->boxes[0] = (struct box){(float)source[0], (float)source[1], (float)source[2],
                                    (float)source[3], confidence,       label};
    answer->box_count = 1;
    answer->confidence = confidence;
}

static int check_class_count(const struct pipeline_model *model, const struct shape *shape,
                             struct baton_error *reterr)
{
    size_t count = 0;

    (void)shape_numbers(shape, &count);
    return count == model->class_count
               ? 0
               : error_set(reterr, BATON_EINVAL, "%zu numbers for %zu classes", count,
                           model->class_count);
}

static int read_class(struct answer *ret, const struct pipeline_model *model,
                      const struct tensor *output, const struct fit *fit, float score_min,
                      struct baton_error *reterr)
{
    struct class_score best;
    int code = check_class_count(model, &output->shape, reterr);

    if (code) {
        return code;
    }
    if (!classes_are_numbers(output->values, model->class_count)) {
        return error_set(reterr, BATON_EINVAL, "one of the classifier's %zu numbers is NaN",
                         model->class_count);
    }
    code = classes_decode(&best, 1, output->values, model->class_count, CLASS_SCORES_ANY, reterr);
    if (code < 0) {
        return code;
    }
    if (best.score >= score_min) {
        say(ret, fit, best.label, best.score);
    }
    return 0;
}

static int read_tensor(struct answer *ret, const struct pipeline_model *model,
                       const struct tensor *output, const struct fit *fit, float score_min,
                       struct baton_error *reterr)
{
    const struct letters letters = {model->classes, model->class_count, model->blank};
    float confidence = 1;
    int code = 0;

    ret->numbers = output->values;
    (void)shape_numbers(&output->shape, &ret->number_count);
    if (model->class_count > 0) {
        code = letters_read(&ret->reading, &letters, output->values, &output->shape, reterr);
        confidence = ret->reading.confidence;
    }
    if (!code && (model->class_count == 0 || (ret->reading.text[0] && confidence >= score_min))) {
        say(ret, fit, 0, confidence);
    }
    return code;
}

int answer_read(struct answer *ret, const struct pipeline_model *model,
                const struct tensor *outputs, int output_count, int64_t pictures, int64_t picture,
                const struct fit *fit, float score_min, struct baton_error *reterr)
{
    struct tensor one = {0};
    int code;

    ret->box_count = 0;
    ret->reading.text[0] = '\0';
    ret->reading.confidence = 0;
    ret->numbers = NULL;
    ret->number_count = 0;
    ret->confidence = 0;
    if (decoder_finds_boxes(model->decoder)) {
        return read_boxes(ret, model, outputs, output_count, picture, fit, score_min, reterr);
    }
    code = one_of(&one, outputs, output_count, pictures, picture, reterr);
    if (code) {
        return code;
    }
    return model->decoder == DECODER_CLASSIFY
               ? read_class(ret, model, &one, fit, score_min, reterr)
               : read_tensor(ret, model, &one, fit, score_min, reterr);
}

int answer_prove(const struct pipeline_model *model, const struct tensor *outputs, int output_count,
                 struct baton_error *reterr)
{
    const struct letters letters = {model->classes, model->class_count, model->blank};
    const struct box_rules rules = rules_of(model, 0);
    struct box_layout layout;
    struct tensor one = {0};
    int code;

    if (decoder_finds_boxes(model->decoder)) {
        code = find_boxes(&layout, outputs, output_count, 0, &rules, reterr);
        return code < 0 ? code : 0;
    }
    code = one_of(&one, outputs, output_count, 1, 0, reterr);
    if (code || model->class_count == 0) {
        return code;
    }
    return model->decoder == DECODER_CLASSIFY ? check_class_count(model, &one.shape, reterr)
                                              : letters_check(&letters, &one.shape, reterr);
}

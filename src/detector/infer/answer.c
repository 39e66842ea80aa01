/* From outputs to what they mean, for each kind of model. */
#include "detector/infer/runner_int.h"

/* The part of a tensor that belongs to one of several pictures. */
static int one_of(struct tensor *ret, const struct tensor *output, int64_t pictures,
                  int64_t picture, struct baton_error *reterr)
{
    struct tensor one = *output;
    size_t count;

    if (!shape_count(&output->shape, &count) ||
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

/* A model may have further outputs, such as those before its head: the first that fits is it. */
static int read_boxes(struct answer *ret, const struct pipeline_model *model,
                      const struct tensor *outputs, int output_count, int64_t picture,
                      const struct fit *fit, float score_min, struct baton_error *reterr)
{
    const struct box_rules rules = {.head = model->decoder == DECODER_YOLOV5 ? BOX_HEAD_YOLOV5
                                                                             : BOX_HEAD_YOLOV8,
                                    .classes = (int)model->class_count,
                                    .score_min = score_min,
                                    .overlap_max = model->nms};
    struct box_layout layout;
    int code = BATON_EINVAL;
    int at;

    for (at = output_count - 1; at >= 0; at--) {
        code = box_layout(&layout, &outputs[at].shape, &rules, reterr);
        if (!code && (size_t)picture < layout.batch) {
            break;
        }
    }
    if (at < 0) {
        return code ? code : error_set(reterr, BATON_EINVAL, "an output of too few pictures");
    }
    ret->box_count = boxes_decode(ret->boxes, BOXES_MAX, outputs[at].values, &layout,
                                  (size_t)picture, &rules, fit, reterr);
    if (ret->box_count < 0) {
        code = ret->box_count;
        ret->box_count = 0;
        return code;
    }
    ret->confidence = ret->box_count > 0 ? ret->boxes[0].score : 0;
    letters_of_boxes(&ret->reading,
                     &(struct letters){model->classes, model->class_count, model->blank},
                     ret->boxes, ret->box_count);
    return 0;
}

/* A model without boxes speaks of all that it was shown. */
static void say(struct answer *answer, const struct fit *fit, int label, float confidence)
{
    const int *source = fit->source;

    answer->boxes[0] = (struct box){(float)source[0], (float)source[1], (float)source[2],
                                    (float)source[3], confidence,       label};
    answer->box_count = 1;
    answer->confidence = confidence;
}

static int read_class(struct answer *ret, const struct pipeline_model *model,
                      const struct tensor *output, const struct fit *fit, float score_min,
                      struct baton_error *reterr)
{
    struct class_score best;
    size_t count = 0;
    int code;

    (void)shape_count(&output->shape, &count);
    if (count != model->class_count) {
        return error_set(reterr, BATON_EINVAL, "%zu numbers for %zu classes", count,
                         model->class_count);
    }
    code = classes_decode(&best, 1, output->values, count, CLASS_SCORES_ANY, reterr);
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
    (void)shape_count(&output->shape, &ret->number_count);
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
    code = one_of(&one, &outputs[0], pictures, picture, reterr);
    if (code) {
        return code;
    }
    return model->decoder == DECODER_CLASSIFY
               ? read_class(ret, model, &one, fit, score_min, reterr)
               : read_tensor(ret, model, &one, fit, score_min, reterr);
}

#include "detector/infer/decoder.h"

#include "base/buffer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Half-precision exports sum to 1 only roughly. */
static const double SUM_TOLERANCE = 0.02;

enum { FORM_MAX = 4096 };

#define ROW(symbol, name) &decode_##name,
static const struct decoder *const decoders[] = {PIPELINE_DECODERS(ROW)};
#undef ROW

/* ---- Refusals ------------------------------------------------------------------------------- */

/* Names what there is, the form of each decoder, and one that fits. */
static int refuse(const struct outputs *outputs, struct baton_error *reterr)
{
    const struct pipeline_model *model = outputs->model;
    char shape[SHAPE_TEXT_MAX];
    struct buffer text;
    const char *whole;

    buffer_init(&text, FORM_MAX);
    buffer_put_text(&text, "output");
    for (int i = 0; i < outputs->count; i++) {
        buffer_printf(&text, " %s", shape_text(&outputs->all[i].shape, shape));
    }
    buffer_printf(&text, " does not fit %zu classes as %s;", model->class_count,
                  decoder_names[model->decoder]);
    for (int i = 0; i < DECODER_COUNT; i++) {
        if (i != DECODER_TENSOR && decoders[i]->read(NULL, outputs, NULL) == 0) {
            buffer_printf(&text, " it fits decoder %s;", decoder_names[i]);
        }
    }
    buffer_put_text(&text, " known are");
    for (int i = 0; i < DECODER_COUNT; i++) {
        buffer_printf(&text, "%s %s %s", i > 0 ? "," : "", decoder_names[i], decoders[i]->before);
        if (decoders[i]->after) {
            buffer_printf(&text, "%zu%s", model->class_count + (size_t)decoders[i]->more,
                          decoders[i]->after);
        }
    }
    whole = buffer_text(&text);
    (void)error_set(reterr, BATON_EPROTO, "%s", whole ? whole : "output: does not fit");
    buffer_fini(&text);
    return BATON_EPROTO;
}

/* ---- Answers -------------------------------------------------------------------------------- */

static int from_left(const void *a, const void *b)
{
    const struct box *first = a;
    const struct box *second = b;

    return (first->x > second->x) - (first->x < second->x);
}

/* Reads boxes as letters, from left to right. */
static void read_letters(struct answer *answer, const struct pipeline_model *model)
{
    struct box sorted[ANSWER_TEXT_MAX] = {0};
    int count = answer->box_count < ANSWER_TEXT_MAX ? answer->box_count : ANSWER_TEXT_MAX;

    memcpy(sorted, answer->boxes, (size_t)count * sizeof(sorted[0]));
    qsort(sorted, (size_t)count, sizeof(sorted[0]), from_left);
    for (int i = 0; i < count; i++) {
        answer_append(answer, model, sorted[i].label, sorted[i].score);
    }
}

int answer_read(struct answer *ret, const struct outputs *outputs, struct baton_error *reterr)
{
    const struct pipeline_model *model = outputs->model;
    int code;

    ret->box_count = 0;
    ret->reading = (struct reading){.text = ""};
    ret->letters = 0;
    ret->numbers = NULL;
    ret->number_count = 0;
    ret->candidates.count = ret->candidates.number = 0;
    ret->candidates.score_min = outputs->score_min;
    code = decoders[model->decoder]->read(ret, outputs, reterr);
    if (code == BATON_EPROTO) {
        return refuse(outputs, reterr);
    }
    if (!code && decoder_finds_boxes(model->decoder)) {
        ret->box_count = boxes_of(ret->boxes, &ret->candidates, outputs->fit, model->nms);
        read_letters(ret, model);
    }
    return code;
}

int answer_prove(const struct pipeline_model *model, const struct tensor *all, int count,
                 int64_t pictures, struct baton_error *reterr)
{
    const struct outputs outputs = {
        .model = model, .all = all, .count = count, .pictures = pictures, .picture = pictures - 1};

    return decoders[model->decoder]->read(NULL, &outputs, NULL) ? refuse(&outputs, reterr) : 0;
}

void answer_say(struct answer *answer, const struct outputs *outputs, int label, float confidence)
{
    const int *source = outputs->fit->source;

    answer->boxes[0] = (struct box){(float)source[0], (float)source[1], (float)source[2],
                                    (float)source[3], confidence,       label};
    answer->box_count = 1;
}

const char *class_name(const struct pipeline_model *model, int label)
{
    return (size_t)label < model->class_count ? model->classes[label] : NULL;
}

void answer_append(struct answer *answer, const struct pipeline_model *model, int label,
                   float score)
{
    struct reading *reading = &answer->reading;
    const char *name = class_name(model, label);
    size_t used = strlen(reading->text), bytes = name ? strlen(name) : 0;

    if (bytes > 0 && used + bytes <= ANSWER_TEXT_MAX) {
        memcpy(reading->text + used, name, bytes + 1);
        answer->letters++;
        reading->confidence += (score - reading->confidence) / (float)answer->letters;
    }
}

/* ---- Outputs -------------------------------------------------------------------------------- */

static bool is_grid(struct grid *ret, const struct outputs *outputs, const struct tensor *tensor,
                    int64_t fields, size_t rows, bool is_transposed)
{
    const struct shape *shape = &tensor->shape;
    const int64_t *sides = shape->sides + (shape->rank == 3);
    int64_t batch = shape->rank == 3 ? shape->sides[0] : 1;
    int usual = is_transposed ? 0 : 1; /* the side along which the fields lie */
    int64_t count = shape_numbers(shape);

    if ((shape->rank != 2 && shape->rank != 3) || count < 0 || batch < 1 ||
        outputs->picture >= batch || fields < 1 ||
        (sides[usual] != fields && sides[1 - usual] != fields)) {
        return false;
    }
    usual = sides[usual] == fields ? usual : 1 - usual;
    *ret = (struct grid){.rows = (size_t)sides[1 - usual],
                         .row_step = usual == 1 ? (size_t)sides[1] : 1,
                         .field_step = usual == 1 ? 1 : (size_t)sides[1]};
    if (tensor->values) {
        ret->values = tensor->values + count / batch * outputs->picture;
    }
    return rows == 0 || ret->rows == rows;
}

bool grid_find(struct grid *ret, const struct outputs *outputs, int *at, int64_t fields,
               size_t rows, bool is_transposed)
{
    for (int i = *at - 1; i >= 0; i--) {
        if (is_grid(ret, outputs, &outputs->all[i], fields, rows, is_transposed)) {
            *at = i;
            return true;
        }
    }
    return false;
}

bool output_of_picture(struct tensor *ret, const struct outputs *outputs)
{
    const struct tensor *first = outputs->all;
    int64_t count = outputs->count > 0 ? shape_numbers(&first->shape) : -1;

    if (count < 0) {
        return false;
    }
    *ret = *first;
    if (outputs->pictures > 1) {
        if (first->shape.rank < 1 || first->shape.sides[0] != outputs->pictures) {
            return false;
        }
        ret->shape.sides[0] = 1;
        ret->values += count / outputs->pictures * outputs->picture;
    }
    return true;
}

int best_class(const float *values, size_t first, size_t count, size_t step, float *ret_score)
{
    bool are_probabilities = true;
    double sum = 0;
    size_t best = first;

    for (size_t i = 0; i < count; i++) {
        float value = values[i * step];
        if (isnan(value)) {
            return -1;
        }
        best = i > first && value > values[best * step] ? i : best;
        are_probabilities = are_probabilities && value >= 0 && value <= 1;
        sum += (double)value;
    }
    if (first >= count) {
        return -1;
    }
    *ret_score = values[best * step];
    if (!are_probabilities || fabs(sum - 1) > SUM_TOLERANCE) {
        sum = 0;
        for (size_t i = 0; i < count; i++) {
            float value = values[i * step];
            /* The difference of two infinite values would be NaN. */
            sum += value == *ret_score ? 1 : exp((double)value - (double)*ret_score);
        }
        *ret_score = (float)(1 / sum);
    }
    return (int)best;
}

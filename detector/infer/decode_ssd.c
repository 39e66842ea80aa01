/* Detectors with boxes and scores as two outputs, in any order.
 *
 *   [batch, N, 4]       left, top, right, bottom, 0 to 1 of the input
 *   [batch, N, 1 + C]   a score for background and one for each class
 */
#include "detector/infer/decoder.h"

#include <math.h>

enum { PLACE_FIELDS = 4 };

struct pair {
    struct grid boxes, scores;
};

/* True if each row is the scores of classes: those of boxes do not sum to 1 in all rows. */
static bool are_scores(const struct grid *grid)
{
    for (size_t row = 0; row < grid->rows; row++) {
        float sum = 0;
        for (size_t i = 0; i < PLACE_FIELDS; i++) {
            sum += grid->values[row * grid->row_step + i * grid->field_step];
        }
        if (!(fabsf(sum - 1) < 0.02F)) {
            return false;
        }
    }
    return true;
}

static bool find(struct pair *ret, const struct outputs *outputs)
{
    int64_t fields = 1 + (int64_t)outputs->model->class_count;
    int of_boxes = outputs->count, of_scores = outputs->count;

    if (!grid_find(&ret->boxes, outputs, &of_boxes, PLACE_FIELDS, 0, false)) {
        return false;
    }
    if (fields != PLACE_FIELDS) {
        return grid_find(&ret->scores, outputs, &of_scores, fields, ret->boxes.rows, false);
    }
    /* Both have the same shape: boxes are the first one, unless its content is scores. */
    of_scores = of_boxes;
    ret->scores = ret->boxes;
    if (!grid_find(&ret->boxes, outputs, &of_scores, fields, ret->scores.rows, false)) {
        return false;
    }
    if (ret->boxes.values && are_scores(&ret->boxes)) {
        struct grid boxes = ret->scores;
        ret->scores = ret->boxes;
        ret->boxes = boxes;
    }
    return true;
}

/* Adds each box with the best of its classes but background. */
static int read(struct answer *ret, const struct outputs *outputs, struct baton_error *reterr)
{
    float width = (float)outputs->model->input.width, height = (float)outputs->model->input.height;
    struct pair pair;

    (void)reterr;
    if (!find(&pair, outputs)) {
        return BATON_EPROTO;
    }
    for (size_t row = 0; ret && row < pair.boxes.rows; row++) {
        const float *at = pair.boxes.values + row * pair.boxes.row_step;
        size_t step = pair.boxes.field_step;
        float score = 0;
        int label = best_class(pair.scores.values + row * pair.scores.row_step, 1,
                               1 + outputs->model->class_count, pair.scores.field_step, &score);

        if (label > 0) { /* not broken */
            candidates_add(&ret->candidates, &(struct candidate){.left = at[0] * width,
                                                                 .top = at[step] * height,
                                                                 .right = at[2 * step] * width,
                                                                 .bottom = at[3 * step] * height,
                                                                 .score = score,
                                                                 .label = label - 1});
        }
    }
    return 0;
}

const struct decoder decode_ssd = {
    .before = "[batch, N, 4] and [batch, N, ", .more = 1, .after = "]", .read = read};

/* Detectors with boxes and scores as two outputs, in any order: SSD and RetinaFace.
 *
 *   ssd          [batch, N, 4]   left, top, right, bottom, 0 to 1 of the input
 *   retinaface   [batch, N, 4]   offsets from N prior boxes, which follow from the input's size
 *   both         [batch, N, 1 + C]   a score for background and one for each class
 *
 * RetinaFace's landmarks, a third output, are not read.
 */
#include "detector/infer/decoder.h"

#include <math.h>

enum { PLACE_FIELDS = 4, STEPS = 3, SIZES = 2 };

/* RetinaFace's as published: pixels between two priors, and the sides of those at one place. */
static const int steps[STEPS] = {8, 16, 32};
static const float sizes[STEPS][SIZES] = {{16, 32}, {64, 128}, {256, 512}};
static const float MIDDLE_VARIANCE = 0.1F, SIDE_VARIANCE = 0.2F;

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

/* Adds the box with the best of its classes but background. Sides are pixels of the input. */
static void take_row(struct answer *ret, const struct pair *pair, const struct outputs *outputs,
                     size_t row, const float sides[4])
{
    float score = 0;
    int label = best_class(pair->scores.values + row * pair->scores.row_step, 1,
                           1 + outputs->model->class_count, pair->scores.field_step, &score);

    if (label > 0) { /* not broken */
        candidates_add(&ret->candidates, sides, score, label - 1);
    }
}

static int read_ssd(struct answer *ret, const struct outputs *outputs, struct baton_error *reterr)
{
    const struct pipeline_input *input = &outputs->model->input;
    float width = (float)input->width, height = (float)input->height;
    struct pair pair;

    (void)reterr;
    if (!find(&pair, outputs)) {
        return BATON_EPROTO;
    }
    for (size_t row = 0; ret && row < pair.boxes.rows; row++) {
        const float *at = pair.boxes.values + row * pair.boxes.row_step;
        size_t step = pair.boxes.field_step;
        const float sides[4] = {at[0] * width, at[step] * height, at[2 * step] * width,
                                at[3 * step] * height};
        take_row(ret, &pair, outputs, row, sides);
    }
    return 0;
}

/* ---- RetinaFace ----------------------------------------------------------------------------- */

static int cells(int side, int step)
{
    return (side + step - 1) / step;
}

static size_t count_priors(const struct pipeline_input *input)
{
    size_t priors = 0;

    for (int i = 0; i < STEPS; i++) {
        priors +=
            (size_t)cells(input->width, steps[i]) * (size_t)cells(input->height, steps[i]) * SIZES;
    }
    return priors;
}

/* The box that lies so far off a prior with that middle and these sides. */
static void move(float ret[4], const struct grid *boxes, size_t row, float x, float y, float side)
{
    const float *at = boxes->values + row * boxes->row_step;
    size_t step = boxes->field_step;
    float width = side * expf(at[2 * step] * SIDE_VARIANCE);
    float height = side * expf(at[3 * step] * SIDE_VARIANCE);

    x += at[0] * MIDDLE_VARIANCE * side;
    y += at[step] * MIDDLE_VARIANCE * side;
    ret[0] = x - width / 2;
    ret[1] = y - height / 2;
    ret[2] = x + width / 2;
    ret[3] = y + height / 2;
}

static int read_retinaface(struct answer *ret, const struct outputs *outputs,
                           struct baton_error *reterr)
{
    const struct pipeline_input *input = &outputs->model->input;
    struct pair pair;
    size_t row = 0;

    (void)reterr;
    if (!find(&pair, outputs) || pair.boxes.rows != count_priors(input)) {
        return BATON_EPROTO;
    }
    for (int i = 0; ret && i < STEPS; i++) {
        int columns = cells(input->width, steps[i]), lines = cells(input->height, steps[i]);
        for (int cell = 0; cell < columns * lines; cell++) {
            int line = cell / columns;
            float x = ((float)(cell % columns) + 0.5F) * (float)steps[i];
            float y = ((float)line + 0.5F) * (float)steps[i];
            for (int k = 0; k < SIZES; k++, row++) {
                float sides[4];
                move(sides, &pair.boxes, row, x, y, sizes[i][k]);
                take_row(ret, &pair, outputs, row, sides);
            }
        }
    }
    return 0;
}

const struct decoder decode_ssd = {
    .before = "[batch, N, 4] and [batch, N, ", .more = 1, .after = "]", .read = read_ssd};
const struct decoder decode_retinaface = {.before = "as ssd, for the input's priors",
                                          .read = read_retinaface};

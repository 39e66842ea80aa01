/* Detectors that end with the choice of their boxes: YOLOv10, YOLO26, and exports of others with
 * "nms=True".
 *
 *   [batch, N, 6]   left, top, right, bottom in pixels of the input, score, number of the class
 *
 * Rows that are not used have a score of 0. Overlapping boxes are the model's choice.
 */
#include "detector/infer/decoder.h"

enum { FIELDS = 6 };

static int read(struct answer *ret, const struct outputs *outputs, struct baton_error *reterr)
{
    struct grid grid;
    int output = outputs->count;

    if (!grid_find(&grid, outputs, &output, FIELDS, 0, false)) {
        return BATON_EPROTO;
    }
    for (size_t row = 0; ret && row < grid.rows; row++) {
        const float *at = grid.values + row * grid.row_step;
        size_t step = grid.field_step;
        const float sides[] = {at[0], at[step], at[2 * step], at[3 * step]};
        float score = at[4 * step];
        float label = at[5 * step];
        if (!(score > outputs->score_min)) {
            continue;
        }
        if (!(label >= 0 && label < (float)outputs->model->class_count)) {
            return error_set(reterr, BATON_EINVAL, "a box of class %g: there are %zu classes",
                             (double)label, outputs->model->class_count);
        }
        candidates_add(&ret->candidates, sides, score, (int)label);
    }
    return 0;
}

const struct decoder decode_yolov10 = {.before = "[batch, N, 6]", .read = read};

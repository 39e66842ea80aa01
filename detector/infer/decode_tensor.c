/* Plain numbers; with classes, a text.
 *
 *   [batch, steps, C] or [batch, C, steps]   in each step the best class is a letter
 *
 * With a class that stands for no letter, equal letters in a row are one, and a blank between them
 * makes them two (CTC); without that class every step is a letter.
 */
#include "detector/infer/decoder.h"

/* Steps and classes are the last two sides above the batch, in either order. */
static bool find(struct grid *ret, const struct pipeline_model *model, const struct tensor *one)
{
    size_t classes = model->class_count;
    const int64_t *last = one->shape.sides + one->shape.rank - 1;
    size_t count = (size_t)shape_numbers(&one->shape); /* output_of_picture() has checked it */

    if (one->shape.rank < 1) {
        return false;
    }
    if ((size_t)last[0] == classes) {
        *ret = (struct grid){one->values, count / classes, classes, 1};
        return true;
    }
    if (one->shape.rank > 1 && (size_t)last[-1] == classes && count == classes * (size_t)last[0]) {
        *ret = (struct grid){one->values, count / classes, 1, count / classes};
        return true;
    }
    return false;
}

static void read_text(struct answer *ret, const struct pipeline_model *model,
                      const struct grid *grid)
{
    int last = -1;

    for (size_t step = 0; step < grid->rows; step++) {
        float score = 0;
        int label = best_class(grid->values + step * grid->row_step, 0, model->class_count,
                               grid->field_step, &score);
        if (label < 0) {
            continue; /* no class is the best, so no letter is added */
        }
        if (label != model->blank && (model->blank < 0 || label != last)) {
            answer_append(ret, model, label, score);
        }
        last = label;
    }
}

static int read(struct answer *ret, const struct outputs *outputs, struct baton_error *reterr)
{
    bool has_text = outputs->model->class_count > 0;
    struct tensor one = {0};
    struct grid grid;

    (void)reterr;
    if (!output_of_picture(&one, outputs) || (has_text && !find(&grid, outputs->model, &one))) {
        return BATON_EPROTO;
    }
    if (!ret) {
        return 0;
    }
    ret->numbers = one.values;
    ret->number_count = (size_t)shape_numbers(&one.shape);
    if (!has_text) {
        answer_say(ret, outputs, 0, 1);
        return 0;
    }
    read_text(ret, outputs->model, &grid);
    if (ret->reading.text[0] && ret->reading.confidence >= outputs->score_min) {
        answer_say(ret, outputs, 0, ret->reading.confidence);
    }
    return 0;
}

const struct decoder decode_tensor = {.before = "any numbers", .read = read};

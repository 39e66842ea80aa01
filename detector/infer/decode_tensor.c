/* Plain numbers; with classes, a text.
 *
 *   [batch, steps, C] or [batch, C, steps]   in each step the best class is a letter
 *
 * With a class that stands for no letter, equal letters in a row are one, and a blank between them
 * makes them two (CTC); without that class every step is a letter.
 */
#include "detector/infer/decoder.h"

/* Steps and classes are the last two sides above the batch, in either order. */
static bool find(struct grid *ret, const struct outputs *outputs)
{
    size_t classes = outputs->model->class_count;
    struct tensor one;
    size_t count;
    int last;

    if (!output_of_picture(&one, outputs) || !shape_numbers(&one.shape, &count)) {
        return false;
    }
    last = one.shape.rank - 1;
    if (last >= 0 && (size_t)one.shape.sides[last] == classes) {
        *ret = (struct grid){one.values, count / classes, classes, 1};
        return true;
    }
    if (last > 0 && (size_t)one.shape.sides[last - 1] == classes &&
        count == classes * (size_t)one.shape.sides[last]) {
        *ret = (struct grid){one.values, count / classes, 1, count / classes};
        return true;
    }
    return false;
}

static bool fits(const struct outputs *outputs)
{
    return outputs->model->class_count == 0 ? output_of_picture(&(struct tensor){0}, outputs)
                                            : find(&(struct grid){0}, outputs);
}

static void read_text(struct answer *ret, const struct outputs *outputs)
{
    const struct pipeline_model *model = outputs->model;
    struct grid grid = {0};
    int last = -1;

    (void)find(&grid, outputs);
    for (size_t step = 0; step < grid.rows; step++) {
        float score = 0;
        int label = best_class(grid.values + step * grid.row_step, 0, model->class_count,
                               grid.field_step, &score);
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
    float confidence = 1;

    (void)reterr;
    if (output_of_picture(&one, outputs)) {
        ret->numbers = one.values;
        (void)shape_numbers(&one.shape, &ret->number_count);
    }
    if (has_text) {
        read_text(ret, outputs);
        confidence = ret->reading.confidence;
    }
    if (!has_text || (ret->reading.text[0] && confidence >= outputs->score_min)) {
        answer_say(ret, outputs, 0, confidence);
    }
    return 0;
}

const struct decoder decode_tensor = {.before = "any numbers", .fits = fits, .read = read};

#include "detector/infer/boxes.h"

#include <math.h>
#include <stdlib.h>

enum {
    PLACE_FIELDS = 4, /* x, y, width, height */
    BLOCK_ROWS = 64, /* a block is read at once, so that a transposed output is read line by line */
};

struct candidate {
    float score;
    int label;
    size_t row;
};

static int fields_of(enum box_head head, int classes)
{
    return PLACE_FIELDS + (head == BOX_HEAD_YOLOV5) + classes;
}

/* Returns 2 for the sides as this head has them, 1 if they are transposed, 0 for another head. */
static int resemblance(const int64_t sides[2], enum box_head head, int classes)
{
    int fields = fields_of(head, classes);
    int usual = head == BOX_HEAD_YOLOV5 ? 1 : 0;

    return sides[usual] == fields ? 2 : sides[1 - usual] == fields ? 1 : 0;
}

static int misfit(const struct shape *shape, const struct box_rules *rules,
                  struct baton_error *reterr)
{
    char text[SHAPE_TEXT_MAX];
    int v5 = fields_of(BOX_HEAD_YOLOV5, rules->classes);
    int v8 = fields_of(BOX_HEAD_YOLOV8, rules->classes);

    shape_text(shape, text);
    switch (rules->head) {
    case BOX_HEAD_YOLOV5:
        return error_set(reterr, BATON_EINVAL,
                         "output %s does not fit %d classes: yolov5 would be "
                         "[1, N, %d]",
                         text, rules->classes, v5);
    case BOX_HEAD_YOLOV8:
        return error_set(reterr, BATON_EINVAL,
                         "output %s does not fit %d classes: yolov8 would be "
                         "[1, %d, N]",
                         text, rules->classes, v8);
    default:
        return error_set(reterr, BATON_EINVAL,
                         "output %s does not fit %d classes: yolov5 would be "
                         "[1, N, %d], yolov8 [1, %d, N]",
                         text, rules->classes, v5, v8);
    }
}

int box_layout(struct box_layout *ret, const struct shape *shape, const struct box_rules *rules,
               struct baton_error *reterr)
{
    const int64_t *sides = shape->sides + (shape->rank == 3);
    enum box_head head = rules->head;
    size_t count;
    int usual, fits;

    if (rules->classes < 1 || (shape->rank != 2 && shape->rank != 3) ||
        !shape_numbers(shape, &count) || (shape->rank == 3 && shape->sides[0] < 1)) {
        return misfit(shape, rules, reterr);
    }
    if (head == BOX_HEAD_ANY) {
        head = resemblance(sides, BOX_HEAD_YOLOV8, rules->classes) >=
                       resemblance(sides, BOX_HEAD_YOLOV5, rules->classes)
                   ? BOX_HEAD_YOLOV8
                   : BOX_HEAD_YOLOV5;
    }
    fits = resemblance(sides, head, rules->classes);
    if (fits == 0) {
        return misfit(shape, rules, reterr);
    }
    usual = head == BOX_HEAD_YOLOV5 ? 1 : 0;
    usual = fits == 2 ? usual : 1 - usual; /* the side along which the fields lie */
    ret->head = head;
    ret->classes = rules->classes;
    ret->batch = shape->rank == 3 ? (size_t)shape->sides[0] : 1;
    ret->rows = (size_t)sides[1 - usual];
    ret->field_step = usual == 1 ? 1 : (size_t)sides[1];
    ret->row_step = usual == 1 ? (size_t)sides[1] : 1;
    ret->picture_step = count / ret->batch;
    return 0;
}

/* Reads one field of a block's rows. For a constant step of 1 the compiler uses vectors. */
static inline void best_of_line(const float *line, size_t step, size_t rows, float *best)
{
    for (size_t i = 0; i < rows; i++) {
        float score = line[i * step];
        best[i] = score > best[i] ? score : best[i];
    }
}

static size_t first_class(const struct box_layout *layout)
{
    return PLACE_FIELDS + (layout->head == BOX_HEAD_YOLOV5);
}

/* Finds the best score of each row of a block. NaN compares above no score, so it is never the
 * best. */
static void best_of_block(const float *values, const struct box_layout *layout, size_t first,
                          size_t rows, float best[BLOCK_ROWS])
{
    const float *block = values + first * layout->row_step;

    for (size_t i = 0; i < rows; i++) {
        best[i] = 0;
    }
    for (int class = 0; class < layout->classes; class ++) {
        const float *line = block + (first_class(layout) + (size_t) class) * layout->field_step;
        if (layout->row_step == 1) {
            best_of_line(line, 1, rows, best);
        } else {
            best_of_line(line, layout->row_step, rows, best);
        }
    }
    if (layout->head == BOX_HEAD_YOLOV5) {
        const float *line = block + PLACE_FIELDS * layout->field_step;
        for (size_t i = 0; i < rows; i++) {
            best[i] *= line[i * layout->row_step];
        }
    }
}

/* Returns the class with the best score; only the few rows that are good enough need it. */
static int best_class(const float *values, const struct box_layout *layout, size_t row)
{
    const float *at = values + row * layout->row_step + first_class(layout) * layout->field_step;
    float best = 0;
    int label = 0;

    for (int class = 0; class < layout->classes; class ++) {
        float score = at[(size_t) class * layout->field_step];
        label = score > best ? class : label;
        best = score > best ? score : best;
    }
    return label;
}

/* Nearly every block of a picture has no object. */
static bool has_any(const float best[BLOCK_ROWS], size_t rows, float score_min)
{
    int count = 0;

    for (size_t i = 0; i < rows; i++) {
        count += best[i] > score_min;
    }
    return count > 0;
}

static int by_score(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;

    if (a->score != b->score) {
        return a->score < b->score ? 1 : -1;
    }
    return a->row < b->row ? -1 : a->row > b->row;
}

/* Returns every row whose score is high enough; the caller frees them. NULL: out of memory, or
 * there are none. */
static struct candidate *find(const float *values, const struct box_layout *layout, float score_min,
                              size_t *ret_count, bool *ret_is_out_of_memory)
{
    struct candidate *found = NULL;
    size_t count = 0, room = 0;
    float best[BLOCK_ROWS];

    *ret_is_out_of_memory = false;
    for (size_t first = 0; first < layout->rows; first += BLOCK_ROWS) {
        size_t left = layout->rows - first;
        size_t rows = left < BLOCK_ROWS ? left : BLOCK_ROWS;
        best_of_block(values, layout, first, rows, best);
        if (!has_any(best, rows, score_min)) {
            continue;
        }
        for (size_t i = 0; i < rows; i++) {
            if (!(best[i] > score_min) || !isfinite(best[i])) {
                continue;
            }
            if (count == room) {
                struct candidate *larger;
                room = room > 0 ? room * 2 : 256;
                larger = realloc(found, room * sizeof(*found));
                if (larger == NULL) {
                    free(found);
                    *ret_is_out_of_memory = true;
                    return NULL;
                }
                found = larger;
            }
            found[count++] =
                (struct candidate){best[i], best_class(values, layout, first + i), first + i};
        }
    }
    *ret_count = count;
    return found;
}

static float clamp(float value, float low, float high)
{
    return value < low ? low : value > high ? high : value;
}

/* False: the row is no box, or the box is outside of the picture. */
static bool place(struct box *ret, const float *values, const struct box_layout *layout,
                  const struct candidate *candidate, const struct box_rules *rules,
                  const struct fit *fit)
{
    const float *at = values + candidate->row * layout->row_step;
    float x = at[0], y = at[layout->field_step];
    float width = at[2 * layout->field_step], height = at[3 * layout->field_step];
    float left, top, right, bottom;

    if (!isfinite(x) || !isfinite(y) || !isfinite(width) || !isfinite(height) || width <= 0 ||
        height <= 0) {
        return false;
    }
    if (rules->are_relative) {
        x *= (float)fit->width;
        width *= (float)fit->width;
        y *= (float)fit->height;
        height *= (float)fit->height;
    }
    left = fit_source_x(fit, x - width / 2);
    right = fit_source_x(fit, x + width / 2);
    top = fit_source_y(fit, y - height / 2);
    bottom = fit_source_y(fit, y + height / 2);
    left = clamp(left, (float)fit->source[0], (float)(fit->source[0] + fit->source[2]));
    right = clamp(right, (float)fit->source[0], (float)(fit->source[0] + fit->source[2]));
    top = clamp(top, (float)fit->source[1], (float)(fit->source[1] + fit->source[3]));
    bottom = clamp(bottom, (float)fit->source[1], (float)(fit->source[1] + fit->source[3]));
    *ret = (struct box){.x = left,
                        .y = top,
                        .width = right - left,
                        .height = bottom - top,
                        .score = candidate->score < 1 ? candidate->score : 1,
                        .label = candidate->label};
    return ret->width > 0 && ret->height > 0;
}

float box_overlap(const struct box *a, const struct box *b)
{
    float width = fminf(a->x + a->width, b->x + b->width) - fmaxf(a->x, b->x);
    float height = fminf(a->y + a->height, b->y + b->height) - fmaxf(a->y, b->y);
    float shared;

    if (!(width > 0) || !(height > 0)) {
        return 0;
    }
    shared = width * height;
    return shared / (a->width * a->height + b->width * b->height - shared);
}

static bool is_covered(const struct box *box, const struct box *kept, int count, float overlap_max)
{
    for (int i = 0; i < count; i++) {
        if (kept[i].label == box->label && box_overlap(&kept[i], box) > overlap_max) {
            return true;
        }
    }
    return false;
}

int boxes_decode(struct box *ret, int max, const float *values, const struct box_layout *layout,
                 size_t picture, const struct box_rules *rules, const struct fit *fit,
                 struct baton_error *reterr)
{
    struct candidate *candidates;
    size_t count = 0;
    bool is_out_of_memory;
    int kept = 0;

    if (picture >= layout->batch) {
        return error_set(reterr, BATON_EINVAL, "picture %zu of a batch of %zu", picture,
                         layout->batch);
    }
    values += picture * layout->picture_step;
    candidates = find(values, layout, rules->score_min, &count, &is_out_of_memory);
    if (is_out_of_memory) {
        return error_set(reterr, BATON_ENOMEM, "boxes of %zu rows: out of memory", layout->rows);
    }
    if (count > 1) {
        qsort(candidates, count, sizeof(*candidates), by_score);
    }
    count = count < BOXES_CANDIDATES_MAX ? count : BOXES_CANDIDATES_MAX;
    max = max < BOXES_MAX ? max : BOXES_MAX;
    for (size_t i = 0; i < count && kept < max; i++) {
        struct box box;
        if (place(&box, values, layout, &candidates[i], rules, fit) &&
            !is_covered(&box, ret, kept, rules->overlap_max)) {
            ret[kept++] = box;
        }
    }
    free(candidates);
    return kept;
}

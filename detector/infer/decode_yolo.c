/* YOLO's heads. x and y are the middle of a box, in pixels of the input.
 *
 *   yolov5   [batch, N, 5 + C]   x, y, width, height, objectness, a score for each class
 *   yolov8   [batch, 4 + C, N]   x, y, width, height, a score for each class; also of v9 and v11
 */
#include "detector/infer/decoder.h"

enum {
    PLACE_FIELDS = 4,
    BLOCK_ROWS = 64, /* a block is read at once, so that a transposed output is read line by line */
};

/* Reads one field of a block's rows. For a constant step of 1 the compiler uses vectors. */
static inline void best_of_line(const float *line, size_t step, size_t rows, float *best)
{
    for (size_t i = 0; i < rows; i++) {
        float score = line[i * step];
        best[i] = score > best[i] ? score : best[i];
    }
}

/* Finds the best score of each row of a block. NaN compares above no score, so it is never the
 * best. */
static void best_of_block(const struct grid *grid, size_t first, size_t rows, size_t first_class,
                          size_t classes, float best[BLOCK_ROWS])
{
    const float *block = grid->values + first * grid->row_step;

    for (size_t i = 0; i < rows; i++) {
        best[i] = 0;
    }
    for (size_t i = 0; i < classes; i++) {
        const float *line = block + (first_class + i) * grid->field_step;
        if (grid->row_step == 1) {
            best_of_line(line, 1, rows, best);
        } else {
            best_of_line(line, grid->row_step, rows, best);
        }
    }
    if (first_class > PLACE_FIELDS) {
        const float *line = block + PLACE_FIELDS * grid->field_step;
        for (size_t i = 0; i < rows; i++) {
            best[i] *= line[i * grid->row_step];
        }
    }
}

/* Only the few rows that are good enough need their class and box. */
static void take_row(struct candidates *candidates, const struct grid *grid, size_t row,
                     size_t first_class, size_t classes, float score)
{
    const float *at = grid->values + row * grid->row_step;
    size_t step = grid->field_step;
    float half_width = at[2 * step] / 2, half_height = at[3 * step] / 2;
    const float sides[] = {at[0] - half_width, at[step] - half_height, at[0] + half_width,
                           at[step] + half_height};
    float best = 0;
    int label = 0;

    for (size_t i = 0; i < classes; i++) {
        float value = at[(first_class + i) * step];
        label = value > best ? (int)i : label;
        best = value > best ? value : best;
    }
    candidates_add(candidates, sides, score, label);
}

static void read_grid(struct candidates *candidates, const struct grid *grid, size_t first_class,
                      size_t classes)
{
    float best[BLOCK_ROWS];

    for (size_t first = 0; first < grid->rows; first += BLOCK_ROWS) {
        size_t rows = grid->rows - first < BLOCK_ROWS ? grid->rows - first : BLOCK_ROWS;
        int good = 0;
        best_of_block(grid, first, rows, first_class, classes, best);
        for (size_t i = 0; i < rows; i++) {
            good += best[i] > candidates->score_min;
        }
        /* Nearly every block of a picture has no object. */
        for (size_t i = 0; i < rows && good > 0; i++) {
            if (best[i] > candidates->score_min) {
                take_row(candidates, grid, first + i, first_class, classes, best[i]);
            }
        }
    }
}

static int read_head(struct answer *ret, const struct outputs *outputs, size_t first_class)
{
    size_t classes = outputs->model->class_count;
    bool is_transposed = first_class == PLACE_FIELDS;
    int output = outputs->count;
    struct grid grid;

    if (!grid_find(&grid, outputs, &output, (int64_t)(first_class + classes), 0, is_transposed)) {
        return BATON_EPROTO;
    }
    if (ret) {
        read_grid(&ret->candidates, &grid, first_class, classes);
    }
    return 0;
}

static int read_v5(struct answer *ret, const struct outputs *outputs, struct baton_error *reterr)
{
    (void)reterr;
    return read_head(ret, outputs, PLACE_FIELDS + 1);
}

static int read_v8(struct answer *ret, const struct outputs *outputs, struct baton_error *reterr)
{
    (void)reterr;
    return read_head(ret, outputs, PLACE_FIELDS);
}

const struct decoder decode_yolov5 = {
    .before = "[batch, N, ", .more = 5, .after = "]", .read = read_v5};
const struct decoder decode_yolov8 = {
    .before = "[batch, ", .more = 4, .after = ", N]", .read = read_v8};

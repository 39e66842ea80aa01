/* Converts a detector's output to boxes in the frame. Pure.
 *
 *   yolov5   [batch, N, 5 + C]   x, y, width, height, objectness, a score for each class
 *   yolov8   [batch, 4 + C, N]   x, y, width, height, a score for each class; also of v9 and v11
 *
 * x and y are the middle of a box, in pixels of the model's input. The order of the sides follows
 * from the shape and the number of classes, so a transposed output works too, and the output of
 * another model is an error instead of wrong boxes. Of boxes of one class that overlap, the one
 * with the highest score counts. Broken numbers (NaN, infinite, sides below 0) are no box.
 */
#ifndef DETECTOR_INFER_BOXES_H
#define DETECTOR_INFER_BOXES_H

#include "base/error.h"
#include "detector/infer/fit.h"
#include "detector/infer/shape.h"

enum {
    BOXES_MAX = 1024,           /* of one picture */
    BOXES_CANDIDATES_MAX = 8192 /* so many of the best are compared for overlaps */
};

struct box {
    float x, y, width, height; /* in the frame's pixels, cut to the part that the model saw; x and y
                                  are the upper left corner */
    float score;               /* 0 to 1 */
    int label;                 /* of the class, from 0 */
};

enum box_head {
    BOX_HEAD_ANY, /* the one that the shape fits */
    BOX_HEAD_YOLOV5,
    BOX_HEAD_YOLOV8,
};

struct box_rules {
    enum box_head head;
    int classes;
    float score_min;   /* a box needs a higher score */
    float overlap_max; /* intersection over union that two boxes of one class may have */
    bool are_relative; /* x, y, width, height are 0 to 1, not pixels */
};

/* In an output, field f of row r is at f * field_step + r * row_step. */
struct box_layout {
    enum box_head head; /* not ANY */
    int classes;
    size_t batch, rows;
    size_t field_step, row_step, picture_step;
};

/* Returns BATON_EINVAL if the shape does not fit that head and `classes` classes; the error names
 * both. The shape that a model declares can be checked before it runs, unless it leaves a side
 * open. */
int box_layout(struct box_layout *ret, const struct shape *shape, const struct box_rules *rules,
               struct baton_error *reterr);

/* Finds the boxes of picture `picture` (from 0) of the batch, best first. Returns how many, at most
 * `max` and BOXES_MAX, or BATON_ENOMEM or BATON_EINVAL. `values` has the numbers of the shape that
 * the layout came from. */
int boxes_decode(struct box *ret, int max, const float *values, const struct box_layout *layout,
                 size_t picture, const struct box_rules *rules, const struct fit *fit,
                 struct baton_error *reterr);

/* Returns intersection over union, 0 to 1. */
float box_overlap(const struct box *a, const struct box *b);

#endif

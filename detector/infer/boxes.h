/* From the numbers that a detector gives to boxes in the frame. Pure.
 *
 *   yolov5   [batch, N, 5 + C]   x, y, width, height, objectness, a score for each class
 *   yolov8   [batch, 4 + C, N]   x, y, width, height, a score for each class; also of v9 and v11
 *
 * x and y are a box's middle, in pixels of the model's input. Which side is which follows from the
 * shape and the number of classes, so that a transposed output works too, and one of another model
 * is told apart instead of misread. Boxes of one class that overlap are one box, that of the
 * highest score. What a broken model gives (NaN, infinite, sides below 0) is no box.
 */
#ifndef DETECTOR_INFER_BOXES_H
#define DETECTOR_INFER_BOXES_H

#include "base/error.h"
#include "detector/infer/fit.h"
#include "detector/infer/shape.h"

enum {
    BOXES_MAX = 1024,           /* of one picture */
    BOXES_CANDIDATES_MAX = 8192 /* the best so many are looked at for overlaps */
};

struct box {
    float x, y, width, height; /* in the frame's pixels, cut to what the model was shown; x and y
                                  are the upper left corner */
    float score;               /* 0 to 1 */
    int label;                 /* of the class, from 0 */
};

enum box_head {
    BOX_HEAD_ANY, /* whichever of the two the shape fits */
    BOX_HEAD_YOLOV5,
    BOX_HEAD_YOLOV8,
};

struct box_rules {
    enum box_head head;
    int classes;
    float score_min;   /* a box needs more than it */
    float overlap_max; /* intersection over union that two boxes of one class may have */
    bool are_relative; /* x, y, width, height are 0 to 1, not pixels */
};

/* Where things are in an output: the number of field f of row r is at f * field_step + r *
 * row_step. */
struct box_layout {
    enum box_head head; /* not ANY */
    int classes;
    size_t batch, rows;
    size_t field_step, row_step, picture_step;
};

/* BATON_EINVAL: the shape is not one of `classes` classes and that head; the error names both. A
 * shape that a model declares may be checked before it runs, unless it leaves a side open. */
int box_layout(struct box_layout *ret, const struct shape *shape, const struct box_rules *rules,
               struct baton_error *reterr);

/* The boxes of the batch's picture `picture` (from 0), best first; returns how many, at most `max`
 * and BOXES_MAX, or BATON_ENOMEM, BATON_EINVAL. `values` has as many numbers as the shape says that
 * the layout came from. */
int boxes_decode(struct box *ret, int max, const float *values, const struct box_layout *layout,
                 size_t picture, const struct box_rules *rules, const struct fit *fit,
                 struct baton_error *reterr);

/* Intersection over union, 0 to 1. */
float box_overlap(const struct box *a, const struct box *b);

#endif

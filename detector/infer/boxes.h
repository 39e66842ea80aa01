/* Boxes: those that a decoder found become those of the frame. Pure.
 *
 *   decoder ─▶ candidates_add() for each ─▶ boxes_of(): best first, cut to the picture, one an
 *                                           object
 *
 * Broken numbers (NaN, infinite, sides below 0) are no box.
 *
 * A part of a picture lies in a model's input by its `fit`. A stretched part fills the input and
 * loses its proportions. A letterboxed part keeps them and lies in the middle, with padding beside
 * it.
 */
#ifndef DETECTOR_INFER_BOXES_H
#define DETECTOR_INFER_BOXES_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BOXES_MAX = 1024,     /* of one picture */
    CANDIDATES_MAX = 8192 /* beyond these, the better half of them stays */
};

struct fit {
    int source[4];     /* of the frame, in its pixels: x, y, width, height */
    int width, height; /* of the input */
    int inner[4];      /* where the source lies in the input: x, y, width, height */
};

void fit_init(struct fit *ret, const int source[4], int width, int height, bool is_letterboxed);

struct box {
    float x, y, width, height; /* in the frame's pixels, cut to the part that the model saw; x and y
                                  are the upper left corner */
    float score;               /* 0 to 1 */
    int label;                 /* of the class, from 0 */
};

struct candidate {
    float sides[4]; /* left, top, right, bottom, in pixels of the model's input */
    float score;
    int label;
    unsigned number; /* in the order of the output */
};

struct candidates {
    struct candidate all[CANDIDATES_MAX];
    size_t count;
    unsigned number;
    float score_min; /* a box needs a higher score; the other two begin with 0 */
};

void candidates_add(struct candidates *candidates, const float sides[4], float score, int label);

/* Returns the number of boxes, at most BOXES_MAX, best first. Of boxes of one class that overlap by
 * more than `overlap_max` (intersection over union; 1: any), the one with the highest score counts.
 * Sorts the candidates. */
int boxes_of(struct box ret[BOXES_MAX], struct candidates *candidates, const struct fit *fit,
             float overlap_max);

/* Returns intersection over union, 0 to 1. */
float box_overlap(const struct box *a, const struct box *b);

#endif

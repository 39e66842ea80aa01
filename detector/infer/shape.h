/* The shape of a tensor: how many numbers lie along each of its sides. Pure. */
#ifndef DETECTOR_INFER_SHAPE_H
#define DETECTOR_INFER_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SHAPE_RANK_MAX = 8,
    SHAPE_COUNT_MAX = 1 << 28, /* numbers of one tensor: a GiB */
    SHAPE_TEXT_MAX = 176,
};

struct shape {
    int rank;
    int64_t sides[SHAPE_RANK_MAX]; /* a side below 0, in a model's declaration, is open */
};

struct tensor {
    struct shape shape;
    const float *values;
};

/* Returns how many numbers such a tensor has; 0: it is an output without results. -1: a side below
 * 0, a wrong rank, or more than SHAPE_COUNT_MAX. */
int64_t shape_numbers(const struct shape *shape);

/* True if `given` fits `declared`, where sides below 1 fit every size. */
bool shape_fits(const struct shape *declared, const struct shape *given);

/* Writes "[1, 84, 8400]", with "?" for a side below 1. Returns `text`. */
const char *shape_text(const struct shape *shape, char text[SHAPE_TEXT_MAX]);

#endif

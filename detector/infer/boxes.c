#include "detector/infer/boxes.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* `side` times `inner` / `outer`, to the nearest, at least 1. */
static int scaled(int side, int inner, int outer)
{
    int pixels = (int)(((int64_t)side * inner * 2 + outer) / ((int64_t)outer * 2));

    return pixels > 0 ? pixels : 1;
}

void fit_init(struct fit *ret, const int source[4], int width, int height, bool is_letterboxed)
{
    int inner_width = width, inner_height = height;

    assert(source[2] > 0 && source[3] > 0);
    if (is_letterboxed) {
        if ((int64_t)width * source[3] <= (int64_t)height * source[2]) {
            inner_height = scaled(source[3], width, source[2]);
        } else {
            inner_width = scaled(source[2], height, source[3]);
        }
    }
    memcpy(ret->source, source, sizeof(ret->source));
    ret->width = width;
    ret->height = height;
    ret->inner[0] = (width - inner_width) / 2;
    ret->inner[1] = (height - inner_height) / 2;
    ret->inner[2] = inner_width;
    ret->inner[3] = inner_height;
}

static int by_score(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;

    if (a->score != b->score) {
        return a->score < b->score ? 1 : -1;
    }
    return a->number < b->number ? -1 : a->number > b->number;
}

static void sort(struct candidates *candidates)
{
    qsort(candidates->all, candidates->count, sizeof(candidates->all[0]), by_score);
}

void candidates_add(struct candidates *candidates, const float sides[4], float score, int label)
{
    if (!(score > candidates->score_min) || !isfinite(score) || !isfinite(sides[0]) ||
        !isfinite(sides[1]) || !isfinite(sides[2]) || !isfinite(sides[3]) || sides[2] <= sides[0] ||
        sides[3] <= sides[1]) {
        return;
    }
    if (candidates->count == CANDIDATES_MAX) {
        sort(candidates);
        candidates->count /= 2;
    }
    candidates->all[candidates->count++] = (struct candidate){
        {sides[0], sides[1], sides[2], sides[3]}, score, label, candidates->number++};
}

/* From the input's pixels to the frame's, within the part that the model saw; x: 0, y: 1. */
static float placed(const struct fit *fit, int axis, float at)
{
    float low = (float)fit->source[axis], high = low + (float)fit->source[2 + axis];
    float value = low + (at - (float)fit->inner[axis]) * (float)fit->source[2 + axis] /
                            (float)fit->inner[2 + axis];

    return value < low ? low : value > high ? high : value;
}

/* False: the box is outside of the picture. */
static bool place(struct box *ret, const struct candidate *candidate, const struct fit *fit)
{
    float x = placed(fit, 0, candidate->sides[0]), y = placed(fit, 1, candidate->sides[1]);

    *ret = (struct box){.x = x,
                        .y = y,
                        .width = placed(fit, 0, candidate->sides[2]) - x,
                        .height = placed(fit, 1, candidate->sides[3]) - y,
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

int boxes_of(struct box ret[BOXES_MAX], struct candidates *candidates, const struct fit *fit,
             float overlap_max)
{
    int kept = 0;

    sort(candidates);
    for (size_t i = 0; i < candidates->count && kept < BOXES_MAX; i++) {
        struct box box;
        if (place(&box, &candidates->all[i], fit) && !is_covered(&box, ret, kept, overlap_max)) {
            ret[kept++] = box;
        }
    }
    return kept;
}

#include "detector/infer/letters.h"

#include <stdlib.h>
#include <string.h>

struct sum {
    size_t bytes;
    int letters;
    float scores;
};

static void add(struct reading *reading, struct sum *sum, const char *letter, float score)
{
    size_t bytes = strlen(letter);

    if (sum->bytes + bytes <= LETTERS_TEXT_MAX) {
        memcpy(reading->text + sum->bytes, letter, bytes);
        sum->bytes += bytes;
        sum->letters++;
        sum->scores += score;
    }
}

static void finish(struct reading *reading, const struct sum *sum)
{
    reading->text[sum->bytes] = '\0';
    reading->confidence = sum->letters > 0 ? sum->scores / (float)sum->letters : 0;
}

/* Steps and classes are the last two sides above the batch, in either order. */
static bool lay_out(const struct shape *shape, size_t classes, size_t *steps, size_t *step_step,
                    size_t *class_step)
{
    int rank = shape->rank;
    size_t count;

    if (rank < 1 || !shape_numbers(shape, &count)) {
        return false;
    }
    if ((size_t)shape->sides[rank - 1] == classes) {
        *steps = count / classes;
        *step_step = classes;
        *class_step = 1;
        return true;
    }
    if (rank > 1 && (size_t)shape->sides[rank - 2] == classes &&
        count == classes * (size_t)shape->sides[rank - 1]) {
        *steps = (size_t)shape->sides[rank - 1];
        *step_step = 1;
        *class_step = *steps;
        return true;
    }
    return false;
}

static int misfit(const struct letters *letters, const struct shape *shape,
                  struct baton_error *reterr)
{
    char text[SHAPE_TEXT_MAX];

    return error_set(reterr, BATON_EINVAL, "an output of %s: no side of %zu classes",
                     shape_text(shape, text), letters->class_count);
}

int letters_check(const struct letters *letters, const struct shape *shape,
                  struct baton_error *reterr)
{
    size_t steps, step_step, class_step;

    return lay_out(shape, letters->class_count, &steps, &step_step, &class_step)
               ? 0
               : misfit(letters, shape, reterr);
}

int letters_read(struct reading *ret, const struct letters *letters, const float *values,
                 const struct shape *shape, struct baton_error *reterr)
{
    struct class_score best = {0};
    struct sum sum = {0};
    size_t steps, step_step, class_step;
    int last = -1;
    float *scores;

    if (!lay_out(shape, letters->class_count, &steps, &step_step, &class_step)) {
        return misfit(letters, shape, reterr);
    }
    scores = malloc(letters->class_count * sizeof(*scores));
    if (!scores) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    for (size_t step = 0; step < steps; step++) {
        for (size_t i = 0; i < letters->class_count; i++) {
            scores[i] = values[step * step_step + i * class_step];
        }
        if (!classes_are_numbers(scores, letters->class_count) ||
            classes_decode(&best, 1, scores, letters->class_count, CLASS_SCORES_ANY, NULL) != 1) {
            continue; /* no class is the best, so no letter is added */
        }
        if (best.label != letters->blank && (letters->blank < 0 || best.label != last)) {
            add(ret, &sum, letters->classes[best.label], best.score);
        }
        last = best.label;
    }
    free(scores);
    finish(ret, &sum);
    return 0;
}

static int from_left(const void *a, const void *b)
{
    const struct box *first = a;
    const struct box *second = b;

    return (first->x > second->x) - (first->x < second->x);
}

void letters_of_boxes(struct reading *ret, const struct letters *letters, const struct box *boxes,
                      int count)
{
    struct box sorted[LETTERS_TEXT_MAX] = {0};
    struct sum sum = {0};

    count = count < LETTERS_TEXT_MAX ? count : LETTERS_TEXT_MAX;
    if (count > 0) {
        memcpy(sorted, boxes, (size_t)count * sizeof(sorted[0]));
        qsort(sorted, (size_t)count, sizeof(sorted[0]), from_left);
    }
    for (int i = 0; i < count; i++) {
        if (sorted[i].label >= 0 && (size_t)sorted[i].label < letters->class_count) {
            add(ret, &sum, letters->classes[sorted[i].label], sorted[i].score);
        }
    }
    finish(ret, &sum);
}

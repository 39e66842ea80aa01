/* Reads the outputs of models, each kind by its decoder. Pure.
 *
 *   outputs of a run ─▶ the decoder that pipeline.json names ─▶ answer: boxes, a class, a text,
 * numbers
 *
 * docs/pipeline.md shows how one is added.
 */
#ifndef DETECTOR_INFER_DECODER_H
#define DETECTOR_INFER_DECODER_H

#include "detector/infer/boxes.h"
#include "detector/infer/shape.h"
#include "detector/model/pipeline.h"

enum { ANSWER_TEXT_MAX = 127 };

struct reading {
    char text[ANSWER_TEXT_MAX + 1]; /* "" if nothing was read; a long text ends at a whole letter */
    float confidence;               /* the mean score of its letters; 0 without any */
};

/* A model's result for one picture. Boxes are sorted, best first. */
struct answer {
    struct box boxes[BOXES_MAX];
    int box_count; /* at least 1 for a result: the whole cut, for a model without boxes */
    struct reading reading;
    int letters;          /* of the text */
    const float *numbers; /* of the outputs; NULL: none */
    size_t number_count;
    struct candidates candidates; /* in use while the outputs are read */
};

/* The outputs of a run of `pictures` pictures, of which one is read. */
struct outputs {
    const struct pipeline_model *model;
    const struct tensor *all;
    int count;
    int64_t pictures, picture;
    const struct fit *fit; /* of the picture into the input */
    float score_min;       /* boxes need a higher score */
};

/* Reads the result for one picture. Returns BATON_EPROTO if the outputs do not have the form of the
 * model's decoder; the error names the forms of all decoders. BATON_EINVAL: a number is wrong. */
int answer_read(struct answer *ret, const struct outputs *outputs, struct baton_error *reterr);

/* The same check for the outputs of so many pictures, with any content. */
int answer_prove(const struct pipeline_model *model, const struct tensor *all, int count,
                 int64_t pictures, struct baton_error *reterr);

/* Returns the name of the class; NULL: the model names none. */
const char *class_name(const struct pipeline_model *model, int label);

/* ---- For decoders --------------------------------------------------------------------------- */

/* One way in which models give their results. */
struct decoder {
    /* The form of its outputs for people: `before`, the number of classes plus `more`, `after`.
     * `after` is NULL if the number of classes does not matter. */
    const char *before, *after;
    int more;
    /* Adds to `ret`, which is empty, what the outputs say; NULL: looks at their shapes only.
     * Candidates become boxes afterwards. Returns BATON_EPROTO, without an error, if the outputs do
     * not have this form, and BATON_EINVAL if a number is wrong. */
    int (*read)(struct answer *ret, const struct outputs *outputs, struct baton_error *reterr);
};

#define DECODER_DECLARE(symbol, name) extern const struct decoder decode_##name;
PIPELINE_DECODERS(DECODER_DECLARE)
#undef DECODER_DECLARE

/* An output of rows with a fixed number of fields: [batch, rows, fields] or transposed; a missing
 * batch is 1. Field f of row r is at values[f * field_step + r * row_step]. */
struct grid {
    const float *values; /* of the picture */
    size_t rows, row_step, field_step;
};

/* Finds the last output before `*at` that is such a grid, and sets *at to it: a model may have
 * further outputs, such as those before its head. If both sides are as long, the fields are the
 * first one if `is_transposed`, else the last. `rows` 0: any number. */
bool grid_find(struct grid *ret, const struct outputs *outputs, int *at, int64_t fields,
               size_t rows, bool is_transposed);

/* The first output as that of one picture. False: there is none, or not for each picture. */
bool output_of_picture(struct tensor *ret, const struct outputs *outputs);

/* A result about the whole picture. */
void answer_say(struct answer *answer, const struct outputs *outputs, int label, float confidence);

/* Returns the class from `first` on with the highest of `count` scores, which lie `step` apart, the
 * first of equal ones; -1: one of them is NaN, so there is no result. Scores that are no
 * probabilities (0 to 1, the sum about 1) are logits, and *ret_score is their softmax. */
int best_class(const float *values, size_t first, size_t count, size_t step, float *ret_score);

/* Appends the class's name to the text. */
void answer_append(struct answer *answer, const struct pipeline_model *model, int label,
                   float score);

#endif

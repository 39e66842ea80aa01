/* A frame with its objects drawn in, as SVG: a JPEG, and above it a box and a label for each
 * object.
 *
 * A box has a colour for each class, and a label: class, score, number of the track. It is thick if
 * this very frame reported the object, and dashed if the score is below the model's confidence.
 */
#ifndef DETECTOR_PROGRAM_DRAWING_H
#define DETECTOR_PROGRAM_DRAWING_H

#include "detector/infer/inference.h"

#include <stdio.h>

struct drawing {
    char *svg; /* owned: the attributes and the content of an element svg */
    int width, height;
};

/* Draws the frame of the result, `width` pixels wide (0: its own width). Returns BATON_ENOMEM or
 * BATON_EIO. */
int drawing_make(struct drawing *ret, const struct inference_result *result, int width,
                 struct baton_error *reterr);
void drawing_free(struct drawing *drawing); /* zeroes are allowed */

/* Writes the drawings as one picture, `columns` in a row. `path` is for the error only. */
int drawings_write(FILE *file, const char *path, const struct drawing *all, int count, int columns,
                   struct baton_error *reterr);

#endif

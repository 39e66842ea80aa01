/* Converts the output of a reader to a text. Pure.
 *
 *   [batch, steps, classes] or [batch, classes, steps]: in each step the best class is a letter
 *
 * With a class that stands for no letter, equal letters in a row are one, and a blank between them
 * makes them two (CTC); without that class every step is a letter. The other kind of reader is a
 * detector whose boxes are letters: they are read from left to right.
 */
#ifndef DETECTOR_INFER_LETTERS_H
#define DETECTOR_INFER_LETTERS_H

#include "detector/infer/boxes.h"
#include "detector/infer/classes.h"

enum { LETTERS_TEXT_MAX = 127, LETTERS_CLASSES_MAX = 4096 };

struct letters {
    char *const *classes; /* texts of the classes */
    size_t class_count;   /* 1 to LETTERS_CLASSES_MAX */
    int blank;            /* -1: none */
};

struct reading {
    char text[LETTERS_TEXT_MAX +
              1];     /* "" if nothing was read; a long text is cut at a whole letter */
    float confidence; /* the mean score of its letters; 0 without any */
};

/* Reads one picture: the first side of `shape` is 1, or missing. Returns BATON_EINVAL if no side
 * has the number of classes. */
int letters_read(struct reading *ret, const struct letters *letters, const float *values,
                 const struct shape *shape, struct baton_error *reterr);

/* Returns BATON_EINVAL if an output of that shape could not be read. */
int letters_check(const struct letters *letters, const struct shape *shape,
                  struct baton_error *reterr);

void letters_of_boxes(struct reading *ret, const struct letters *letters, const struct box *boxes,
                      int count);

#endif

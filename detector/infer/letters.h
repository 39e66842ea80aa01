/* From the numbers of a reader to a text. Pure.
 *
 *   [batch, steps, classes] or [batch, classes, steps]: in each step the best class is a letter
 *
 * With a class that stands for no letter, equal letters that follow each other are one (as CTC
 * has it: a blank between them makes them two); without it every step is a letter. The other way
 * to read is a detector whose boxes are letters: they are read from left to right.
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
    char text[LETTERS_TEXT_MAX + 1]; /* "" if nothing is read; cut at its end, at a whole letter */
    float confidence;                /* the mean of its letters' scores; 0 of none */
};

/* Of one picture: `shape` has 1 as its first side, or is without it. BATON_EINVAL: no side is as
 * long as there are classes. */
int letters_read(struct reading *ret, const struct letters *letters, const float *values,
                 const struct shape *shape, struct baton_error *reterr);

/* Whether such an output could be read. BATON_EINVAL, as above. */
int letters_check(const struct letters *letters, const struct shape *shape,
                  struct baton_error *reterr);

void letters_of_boxes(struct reading *ret, const struct letters *letters, const struct box *boxes,
                      int count);

#endif

/* Finds the word of a list that is nearest to a mistyped one, for "did you mean". Pure. */
#ifndef DETECTOR_MODEL_NEAREST_H
#define DETECTOR_MODEL_NEAREST_H

#include <stddef.h>

struct nearest {
    const char *best; /* NULL: none is near */
    size_t changes;   /* letters that differ */
};

/* Compares one more word. A word is near if at most half of its letters differ. */
void nearest_try(struct nearest *nearest, const char *typed, const char *word);

/* Writes "; did you mean \"word\"?" or "" into `text`, and returns it. */
enum { NEAREST_TEXT_BYTES = 96 };
const char *nearest_text(const struct nearest *nearest, char text[NEAREST_TEXT_BYTES]);

#endif

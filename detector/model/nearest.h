/* Finds the word of a list that is nearest to a mistyped one, for "did you mean". Pure. */
#ifndef DETECTOR_MODEL_NEAREST_H
#define DETECTOR_MODEL_NEAREST_H

#include <stddef.h>

enum { NEAREST_BYTES_MAX = 63 };

struct nearest {
    const char *best; /* NULL: none is near */
    size_t distance;
};

/* Returns the number of letters to add, remove, change or swap with the next one, ignoring case;
 * SIZE_MAX if either word is longer than NEAREST_BYTES_MAX. */
size_t nearest_distance(const char *a, const char *b);

/* Compares one more word. A word is near if at most a third of its letters differ, or one. */
void nearest_try(struct nearest *nearest, const char *typed, const char *word);

/* Writes "; did you mean \"word\"?" or "" into `text`, and returns it. */
enum { NEAREST_TEXT_BYTES = NEAREST_BYTES_MAX + 32 };
const char *nearest_text(const struct nearest *nearest, char text[NEAREST_TEXT_BYTES]);

#endif

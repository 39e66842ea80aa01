/* "did you mean": the word of a list that a mistyped one is nearest to. Pure. */
#ifndef DETECTOR_MODEL_NEAREST_H
#define DETECTOR_MODEL_NEAREST_H

#include <stddef.h>

enum { NEAREST_BYTES_MAX = 63 };

struct nearest {
    const char *best; /* NULL: none is near */
    size_t distance;
};

/* Letters to add, take away, change or swap with the next, case aside; SIZE_MAX if either word is
 * longer than NEAREST_BYTES_MAX. */
size_t nearest_distance(const char *a, const char *b);

/* Weighs one more word; near is a third of the word's letters, at least one. */
void nearest_try(struct nearest *nearest, const char *typed, const char *word);

/* "; did you mean \"word\"?" or "", into `text`, which is returned. */
enum { NEAREST_TEXT_BYTES = NEAREST_BYTES_MAX + 32 };
const char *nearest_text(const struct nearest *nearest, char text[NEAREST_TEXT_BYTES]);

#endif

/* Finds the word of a list that is nearest to a mistyped one. Pure. */
#ifndef DETECTOR_MODEL_NEAREST_H
#define DETECTOR_MODEL_NEAREST_H

#include <stddef.h>

/* Writes "; did you mean \"word\"?" into `text`, or "" if no word is near: of one that is, at most
 * half of the letters differ. Returns `text`. */
enum { NEAREST_TEXT_BYTES = 96 };
const char *nearest_text(char text[NEAREST_TEXT_BYTES], const char *typed, const char *const *words,
                         size_t count);

#endif

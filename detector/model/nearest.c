#include "detector/model/nearest.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

void nearest_try(struct nearest *nearest, const char *typed, const char *word)
{
    size_t changes = text_distance(typed, word);

    if (changes <= strlen(word) / 2 && (nearest->best == NULL || changes < nearest->changes)) {
        nearest->best = word;
        nearest->changes = changes;
    }
}

const char *nearest_text(const struct nearest *nearest, char text[NEAREST_TEXT_BYTES])
{
    text[0] = '\0';
    if (nearest->best != NULL) {
        (void)snprintf(text, NEAREST_TEXT_BYTES, "; did you mean \"%.64s\"?", nearest->best);
    }
    return text;
}

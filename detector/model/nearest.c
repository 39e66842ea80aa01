#include "detector/model/nearest.h"

#include "base/text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

const char *nearest_text(char text[NEAREST_TEXT_BYTES], const char *typed, const char *const *words,
                         size_t count)
{
    size_t least = SIZE_MAX;

    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        size_t changes = text_distance(typed, words[i]);

        if (changes <= strlen(words[i]) / 2 && changes < least) {
            least = changes;
            (void)snprintf(text, NEAREST_TEXT_BYTES, "; did you mean \"%.64s\"?", words[i]);
        }
    }
    return text;
}

#include "detector/model/nearest.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Computes the optimal string alignment distance with three rows of its table. */
size_t nearest_distance(const char *a, const char *b)
{
    size_t rows[3][NEAREST_BYTES_MAX + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    size_t a_bytes = strlen(a), b_bytes = strlen(b);

    if (a_bytes > NEAREST_BYTES_MAX || b_bytes > NEAREST_BYTES_MAX) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= b_bytes; j++) {
        last[j] = j;
        before[j] = 0;
    }
    for (size_t i = 1; i <= a_bytes; i++) {
        size_t *oldest = before;
        row[0] = i;
        for (size_t j = 1; j <= b_bytes; j++) {
            size_t other = lower(a[i - 1]) != lower(b[j - 1]);
            row[j] = least(least(last[j] + 1, row[j - 1] + 1), last[j - 1] + other);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1])) {
                row[j] = least(row[j], before[j - 2] + 1);
            }
        }
        before = last;
        last = row;
        row = oldest;
    }
    return last[b_bytes];
}

void nearest_try(struct nearest *nearest, const char *typed, const char *word)
{
    size_t distance = nearest_distance(typed, word);
    size_t most = strlen(word) / 3;

    if (distance <= (most > 0 ? most : 1) && distance < strlen(word) &&
        (nearest->best == NULL || distance < nearest->distance)) {
        nearest->best = word;
        nearest->distance = distance;
    }
}

const char *nearest_text(const struct nearest *nearest, char text[NEAREST_TEXT_BYTES])
{
    text[0] = '\0';
    if (nearest->best != NULL) {
        (void)snprintf(text, NEAREST_TEXT_BYTES, "; did you mean \"%s\"?", nearest->best);
    }
    return text;
}

#include "base/text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The length of the character that begins here; 0: it may not be displayed. */
static size_t character(const unsigned char *at, size_t left)
{
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t bytes = at[0] < 0x80 ? 1 : at[0] < 0xc0 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    unsigned code;

    if (bytes <= 1) {
        return at[0] >= 0x20 && at[0] != 0x7f ? bytes : 0;
    }
    if (at[0] > 0xf4 || bytes > left) {
        return 0;
    }
    code = at[0] & (0xffu >> (bytes + 1));
    for (size_t i = 1; i < bytes; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
        code = (code << 6) | (at[i] & 0x3fu);
    }
    /* Rejects overlong encodings, surrogates and control characters. */
    return code >= least[bytes] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) &&
                   code >= 0xa0
               ? bytes
               : 0;
}

bool text_clean(char *ret, size_t ret_bytes, const char *bytes, size_t count)
{
    const unsigned char *at = (const unsigned char *)bytes;
    bool is_clean = true;
    size_t used = 0;
    size_t done = 0;

    while (done < count) {
        size_t length = character(at + done, count - done);
        size_t wanted = length > 0 ? length : 1;
        if (used + wanted >= ret_bytes) {
            is_clean = false;
            break;
        }
        if (length > 0) {
            memcpy(ret + used, at + done, length);
        } else {
            ret[used] = '?';
            is_clean = false;
        }
        used += wanted;
        done += wanted;
    }
    ret[used] = '\0';
    return is_clean;
}

size_t text_control(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    if (at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0) {
        return 2;
    }
    return at[0] < 0x20 || at[0] == 0x7f;
}

bool text_has_control(const char *text, size_t bytes)
{
    size_t at = 0;

    while (at < bytes && text_control(text + at) == 0) {
        at++;
    }
    return at < bytes;
}

size_t text_mark_bytes(const char *text, size_t count)
{
    static const char mark[] = {'\xEF', '\xBB', '\xBF'};

    return count >= sizeof(mark) && memcmp(text, mark, sizeof(mark)) == 0 ? sizeof(mark) : 0;
}

size_t text_distance(const char *a, const char *b)
{
    size_t row[TEXT_DISTANCE_MAX + 1];
    size_t width = strnlen(b, TEXT_DISTANCE_MAX);

    for (size_t j = 0; j <= width; j++) {
        row[j] = j;
    }
    for (size_t i = 1; a[i - 1]; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= width; j++) {
            size_t swapped = corner + (a[i - 1] != b[j - 1]);
            size_t shorter = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            corner = row[j];
            row[j] = swapped < shorter ? swapped : shorter;
        }
    }
    return row[width];
}

const char *text_nearest(char ret[static TEXT_NEAREST_BYTES], const char *typed,
                         const char *const *words, size_t count)
{
    size_t least = SIZE_MAX;

    ret[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        size_t changes = text_distance(typed, words[i]);

        if (changes <= strlen(words[i]) / 2 && changes < least) {
            least = changes;
            (void)snprintf(ret, TEXT_NEAREST_BYTES, "; did you mean \"%.64s\"?", words[i]);
        }
    }
    return ret;
}

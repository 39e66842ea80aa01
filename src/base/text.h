/* Texts of others: made safe to display, and compared with the names that were possibly meant. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Copies `count` bytes: control characters and invalid UTF-8 become '?'; a text that is too long is
 * cut between characters. Returns whether the text is unchanged. */
bool text_clean(char *ret, size_t ret_bytes, const char *bytes, size_t count);

/* The bytes of the control character with which a text of UTF-8 begins: one of ASCII, or one of two
 * bytes (U+0080 to U+009F), some of which move a terminal's cursor as ESC does. 0: it is another
 * character. NUL ends the text. */
size_t text_control(const char *text);

/* Whether one is among the bytes, which NUL follows. */
bool text_has_control(const char *text, size_t bytes);

/* How many bytes at the beginning of a file are a byte order mark, which some editors write. */
size_t text_mark_bytes(const char *text, size_t count);

enum { TEXT_DISTANCE_MAX = 64 };

/* The edit distance (Levenshtein) from `a` to the first TEXT_DISTANCE_MAX bytes of `b`. */
size_t text_distance(const char *a, const char *b);

/* Writes "; did you mean \"word\"?" of the nearest word, or "" if none is near: of one that is, at
 * most half of the letters differ. Returns `ret`. */
enum { TEXT_NEAREST_BYTES = 96 };
const char *text_nearest(char ret[static TEXT_NEAREST_BYTES], const char *typed,
                         const char *const *words, size_t count);

#endif

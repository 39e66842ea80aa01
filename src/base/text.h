/* Foreign bytes as text that is safe to display, in a log line or in JSON. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Copies `count` bytes: control characters and invalid UTF-8 become '?'; a text that is too long is
 * cut between characters. Returns whether the text is unchanged. */
bool text_clean(char *ret, size_t ret_bytes, const char *bytes, size_t count);

#endif

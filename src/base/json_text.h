/* JSON as text, in place of json_dumps(), which may return another text than there is: jansson 2.14
 * passes over a failed malloc() while it writes a key.
 */
#ifndef BASE_JSON_TEXT_H
#define BASE_JSON_TEXT_H

#include "base/buffer.h"

#include <jansson.h>

/* Appends the text, or the buffer has failed. `flags` are jansson's. */
void json_put_to(struct buffer *buffer, const json_t *json, size_t flags);

/* The text, for free(); NULL: out of memory, or `json` is NULL. */
char *json_text(const json_t *json, size_t flags);

#endif

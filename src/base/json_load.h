/* JSON from outside, in place of json_loads() and json_loadb(), which may read another text than
 * there is, or beyond their memory: jansson 2.14 passes over a failed malloc() while it collects
 * the bytes of a string.
 */
#ifndef BASE_JSON_LOAD_H
#define BASE_JSON_LOAD_H

#include <jansson.h>
#include <stddef.h>

/* For programs, before their first thread: from then on, once a malloc() has failed, all others of
 * the same text fail as well, and it is refused. A library leaves this to its program. */
void json_load_guard(void);

json_t *json_load_text(const char *text, size_t flags, json_error_t *reterr);
json_t *json_load_bytes(const char *bytes, size_t count, size_t flags, json_error_t *reterr);

#endif

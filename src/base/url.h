/* The parts of a URL that are read the same way in all of them: escapes, and the query.
 *
 *   SCHEME://…?KEY=VALUE&KEY=VALUE&KEY
 *              └── url_query(), then a pair by each url_next()
 */
#ifndef BASE_URL_H
#define BASE_URL_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* Percent-decodes `length` bytes; what is no escape stands for itself. BATON_ETOOBIG: no room for
 * it and the NUL; BATON_EINVAL: it has a NUL within. */
int url_decode(char *ret, size_t ret_bytes, const char *text, size_t length);

/* Into the URL, as written there: still with its escapes. */
struct url_pair {
    const char *key;
    size_t key_bytes;
    const char *value; /* of a key alone: 0 bytes */
    size_t value_bytes;
};

/* Where the query begins, for url_next(). */
const char *url_query(const char *url);
/* The next pair; empty ones are passed over. False: there is none, or what is left is a fragment.
 */
bool url_next(const char **query, struct url_pair *ret);

#endif

/* The parts of a URL that are read the same way in all of them: escapes, and the query.
 *
 *   SCHEME://…?KEY=VALUE&KEY=VALUE&KEY
 *              └── url_query(), then a pair by each url_next()
 *
 * Pure.
 */
#ifndef BASE_URL_H
#define BASE_URL_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* Percent-decodes `length` bytes; other characters stay. BATON_ETOOBIG: no room for the text and
 * its NUL; BATON_EINVAL: the text contains a NUL. */
int url_decode(char *ret, size_t ret_bytes, const char *text, size_t length);

/* Points into the URL, still with its escapes. */
struct url_pair {
    const char *key;
    size_t key_bytes;
    const char *value; /* 0 bytes for a key alone */
    size_t value_bytes;
};

/* Where the query begins, for url_next(). */
const char *url_query(const char *url);
/* The next pair; empty pairs are skipped. False: there is none, or only a fragment. */
bool url_next(const char **query, struct url_pair *ret);
/* Decodes the first value of that key, which has to fit. False: there is none, or an empty one. */
bool url_find(char *ret, size_t ret_bytes, const char *url, const char *key);

#endif

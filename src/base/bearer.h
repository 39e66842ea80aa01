/* The file of a bearer token: a secret that an HTTP request shows. */
#ifndef BASE_BEARER_H
#define BASE_BEARER_H

#include "base/error.h"

#include <stddef.h>

enum { BEARER_MIN = 16 }; /* characters: fewer can be guessed */

/* The one line of the file, without its end. BATON_EAUTH: others than its owner may read or change
 * it; root's may be read by its group, too, for a service that has a user of its own. BATON_EINVAL:
 * shorter than BEARER_MIN, longer than ret_bytes - 2, more than a line, or no visible characters of
 * ASCII, which is what a header holds. BATON_EIO: it cannot be read. No error quotes it. */
int bearer_read(char *ret, size_t ret_bytes, const char *path, struct baton_error *reterr);

#endif

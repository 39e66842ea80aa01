/* The file of a bearer token: a secret that an HTTP request carries. */
#ifndef BASE_BEARER_H
#define BASE_BEARER_H

#include "base/error.h"

#include <stddef.h>

enum { BEARER_MIN = 16 }; /* characters: fewer can be guessed */

/* Reads the only line of the file, without its end. BATON_EAUTH: another user may read or change
 * the file (the group may read root's file, for a service with a user of its own). BATON_EINVAL:
 * the line is shorter than BEARER_MIN or longer than ret_bytes - 2, there is another line, or a
 * character is not visible ASCII, which a header needs; or the file cannot be read, as a wrong name
 * is more likely than a failing disk. No error quotes the token. */
int bearer_read(char *ret, size_t ret_bytes, const char *path, struct baton_error *reterr);

#endif

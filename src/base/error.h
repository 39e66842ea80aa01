/* How the inside fills a struct baton_error (see <baton/error.h> for the codes). */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <baton/error.h>

/* Writes code and the formatted message into `reterr` (NULL: nowhere) and returns code, so that
 * `return error_set(reterr, BATON_EINVAL, "port %d: must be 1 to 65535", port);` is one line.
 * Control characters in the result are replaced, so that an outside value cannot forge a line. */
int error_set(struct baton_error *reterr, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "context: " before a message that a deeper call wrote; returns reterr's code. */
int error_wrap(struct baton_error *reterr, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The code that stands for a system's errno (positive); BATON_EIO where none fits better. */
int error_from_errno(int errnum);

#endif

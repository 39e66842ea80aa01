/* Finds a shared library that may be missing. */
#ifndef DETECTOR_INFER_LIBRARY_H
#define DETECTOR_INFER_LIBRARY_H

#include "base/error.h"

/* Opens the first of `names` (ends with NULL) that is found in ../lib, ../lib/baton and
 * ../../lib/baton from this program, where Baton is installed, in ~/.local/lib/baton, or where the
 * loader looks; or only `path`, unless it is NULL. The result is for dlclose(). Returns
 * BATON_ENOENT. */
int library_open(void **ret, const char *const *names, const char *path,
                 struct baton_error *reterr);

#endif

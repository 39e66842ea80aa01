/* Where a shared library lies that may or may not be there. */
#ifndef DETECTOR_INFER_LIBRARY_H
#define DETECTOR_INFER_LIBRARY_H

#include "base/error.h"

/* Opens the first of `names` (ends with NULL) that is found: in ../lib, ../lib/baton and
 * ../../lib/baton from this program, where Baton is installed, in ~/.local/lib/baton, where the
 * loader looks. `path` not NULL: just that one. For dlclose(). BATON_ENOENT. */
int library_open(void **ret, const char *const *names, const char *path,
                 struct baton_error *reterr);

#endif

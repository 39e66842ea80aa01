#include "base/invariant.h"

#include <stdio.h>
#include <stdlib.h>

void invariant_failed(const char *text, const char *file, int line)
{
    (void)fprintf(stderr, "baton: broken invariant: %s (%s:%d)\n", text, file, line);
    abort();
}

/* The members that may take leadership, for the error about a name that is none of them. */
#ifndef PROVIDER_HEIRS_H
#define PROVIDER_HEIRS_H

#include "base/error.h"

#include <stddef.h>

enum { HEIRS_TEXT_MAX = 160 };

struct heirs {
    char text[HEIRS_TEXT_MAX]; /* "a, b, c"; {0}: none yet */
    size_t bytes;
    size_t more; /* members whose names did not fit */
};

void heirs_add(struct heirs *heirs, const char *name);
/* Fills in BATON_EINVAL: `to` is none of them. */
int heirs_refuse(const struct heirs *heirs, const char *to, struct baton_error *reterr);

#endif

/* Who may be handed leadership, as an answer to a name that is none of them. */
#ifndef PROVIDER_HEIRS_H
#define PROVIDER_HEIRS_H

#include "base/error.h"

#include <stddef.h>

enum { HEIRS_TEXT_MAX = 160 };

struct heirs {
    char text[HEIRS_TEXT_MAX]; /* "a, b, c"; {0}: nobody yet */
    size_t bytes;
    size_t more; /* for whom there was no room */
};

void heirs_add(struct heirs *heirs, const char *name);
/* BATON_EINVAL: `to` is none of them. */
int heirs_refuse(const struct heirs *heirs, const char *to, struct baton_error *reterr);

#endif

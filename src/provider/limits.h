/* How long the names and values of state and channels may be, in every provider. */
#ifndef PROVIDER_LIMITS_H
#define PROVIDER_LIMITS_H

#include "provider/provider.h"

/* BATON_ETOOBIG: `name`, of a key or channel, or `bytes` of a value or message are too many. */
int limits_check(const char *name, size_t bytes, struct baton_error *reterr);

#endif

/* A copied list of values, so that callbacks on it may write, and no lock is held meanwhile. */
#ifndef PROVIDER_LISTING_H
#define PROVIDER_LISTING_H

#include "provider/provider.h"

struct listing { /* {0}: empty */
    struct provider_value *values;
    size_t count, room;
    size_t bytes; /* what its values cost */
};

void listing_fini(struct listing *listing);

/* The memory that a copy of a value takes. */
size_t listing_cost(const struct provider_value *value);

/* Appends a copy of a value, with a NUL behind its bytes. BATON_ENOMEM: nothing was added. */
int listing_add(struct listing *listing, const struct provider_value *value);

#endif

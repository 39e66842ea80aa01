/* Values by key, copied: whoever is told of them may write meanwhile, and no lock is held. */
#ifndef PROVIDER_LISTING_H
#define PROVIDER_LISTING_H

#include "provider/provider.h"

struct listing { /* {0}: empty */
    struct provider_value *values;
    size_t count, room;
};

void listing_fini(struct listing *listing);

/* Copies one that is there; a NUL follows its bytes. BATON_ENOMEM: nothing was added. */
int listing_add(struct listing *listing, const struct provider_value *value);

#endif

/* Which model a subscription's list names. */
#ifndef DETECTOR_PROGRAM_WANTED_H
#define DETECTOR_PROGRAM_WANTED_H

#include "protocol/protocol.h"

struct wanted {
    int64_t model_id;
    char *name, *url;
    char *identity; /* of number and address, without its signature; NULL: it is no address */
};

enum wanted_change {
    WANTED_SAME,
    WANTED_SIGNATURE, /* the same model at the same place, by a fresh URL */
    WANTED_OTHER,
};

/* Remembers what the subscription names, and says in *ret what is new of it. BATON_ENOMEM, and
 * nothing has changed. */
int wanted_set(struct wanted *wanted, const struct subscription *subscription,
               enum wanted_change *ret);
void wanted_fini(struct wanted *wanted);

#endif

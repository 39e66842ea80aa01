/* Finds the model that a subscription's list names. */
#ifndef DETECTOR_PROGRAM_WANTED_H
#define DETECTOR_PROGRAM_WANTED_H

#include "protocol/protocol.h"

struct wanted {
    int64_t model_id;
    char *name, *url;
    char *identity; /* number and address without its signature; NULL: the address is none */
};

enum wanted_change {
    WANTED_SAME,
    WANTED_SIGNATURE, /* the same model at the same address, by a fresh URL */
    WANTED_OTHER,
};

/* Stores the subscription's model, and sets *ret to what has changed. Returns BATON_ENOMEM, and
 * then nothing has changed. */
int wanted_set(struct wanted *wanted, const struct subscription *subscription,
               enum wanted_change *ret);
void wanted_fini(struct wanted *wanted);

#endif

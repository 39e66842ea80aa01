/* Starts the guardian program; inside the guardian layer only. */
#ifndef GUARDIAN_SPAWN_H
#define GUARDIAN_SPAWN_H

#include "base/error.h"

#include <sys/types.h>

struct spawn_descriptors {
    int socket; /* the guardian's end */
    int parent; /* pidfd of this process */
    int shared; /* memfd */
};

/* All descriptors stay the caller's. *ret_first is a child that ends as soon as it has started the
 * guardian; the caller waits for it. BATON_EIO, BATON_ENOENT. */
int guardian_spawn(pid_t *ret_first, const char *program,
                   const struct spawn_descriptors *descriptors, struct baton_error *reterr);

#endif

/* The process baton-unpack, from its parent's side. */
#ifndef DETECTOR_MODEL_UNPACK_CHILD_H
#define DETECTOR_MODEL_UNPACK_CHILD_H

#include "detector/model/archive_rules.h"

#include <baton/error.h>
#include <sys/types.h>

struct unpack_child {
    int socket;
    pid_t pid;
};

/* Starts it on the archive (borrowed), with the rules; the same thread must end it. Returns
 * BATON_EUNAVAILABLE if it cannot be started. */
int unpack_child_start(struct unpack_child *ret, int archive_fd, const struct archive_rules *rules,
                       struct baton_error *reterr);

/* It has closed its socket: says how it ended. */
int unpack_child_why(struct unpack_child *child, struct baton_error *reterr);

void unpack_child_end(struct unpack_child *child); /* kills it if it still runs */

#endif

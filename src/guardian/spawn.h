/* Starts the guardian program; for the guardian layer only. */
#ifndef GUARDIAN_SPAWN_H
#define GUARDIAN_SPAWN_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct spawn_descriptors {
    int socket; /* the guardian's end */
    int parent; /* pidfd of this process */
    int shared; /* memfd */
};

/* The caller keeps its descriptors, and waits for *ret_first: a child that ends as soon as it has
 * started the guardian. BATON_EIO, BATON_ENOENT. */
int guardian_spawn(pid_t *ret_first, const char *program,
                   const struct spawn_descriptors *descriptors, struct baton_error *reterr);

/* Finds the program: beside this executable or in ../libexec/baton from there, then the same
 * relative to this library's file, then in the installation's folder. False: not found. */
bool guardian_find(char *ret, size_t ret_bytes);

#endif

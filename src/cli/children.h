/* The children of the calling thread, when it is a subreaper that ends all its descendants. */
#ifndef CLI_CHILDREN_H
#define CLI_CHILDREN_H

#include <stdbool.h>
#include <sys/types.h>

typedef bool children_spares_cb(const void *userdata, pid_t child);

/* Kills every child that is not spared, takes the exit statuses of the dead ones, and returns how
 * many are left; -1: /proc has no list of them. `spares` NULL: none. The kernel uses a
 * child's number again only after its status was taken. */
int children_kill(children_spares_cb *spares, const void *userdata);

bool children_are_left(void);

#endif

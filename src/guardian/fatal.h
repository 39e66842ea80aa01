/* Fatal signals: voids the lease and announces the crash before the kernel frees the memory.
 *
 * The kernel reports a death only after the process's memory is freed, which takes tens of
 * milliseconds for a gigabyte. So a handler for SEGV, BUS, ILL, FPE, ABRT and SYS first voids every
 * registered lease for good, then sends each registered datagram, and then does what the program
 * had set before: it calls the program's handler, or takes the default action, with the right
 * status and core dump. If the program's handler recovers by a jump, the leases stay void.
 *
 * Opt-in: a program's signals are untouched unless it calls fatal_install(). Call it after the
 * program has set its own handlers; a handler that is set later replaces ours.
 */
#ifndef GUARDIAN_FATAL_H
#define GUARDIAN_FATAL_H

#include "base/error.h"

#include <stddef.h>

enum { FATAL_ENTRIES_MAX = 64 }; /* elections in one process */

struct fatal_entry {
    void (*void_lease)(void *lease); /* async-signal-safe, for good */
    void *lease;
    int fd;               /* a datagram socket; -1: none for the moment */
    const void *datagram; /* borrowed until fatal_remove */
    size_t bytes;
};

/* Installs the handlers (a later call only counts), and an alternate stack for this thread if it
 * has none. BATON_EIO: the system refused. */
int fatal_install(struct baton_error *reterr);
/* Undoes one fatal_install(); the last call restores the earlier handlers where ours are still
 * set. */
void fatal_uninstall(void);

/* Gives the calling thread an alternate stack, so that its stack overflows are handled too. The
 * stack lasts as long as the process. BATON_ENOMEM. */
int fatal_guard_thread(void);

/* Returns a slot ≥ 0, or BATON_ETOOBIG. */
int fatal_add(const struct fatal_entry *entry);
void fatal_set_fd(int slot, int fd);
/* A handler that starts after the return does not use the entry. */
void fatal_remove(int slot);

#endif

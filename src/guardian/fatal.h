/* Fatal signals: void the lease and announce the crash before the kernel tears the memory down.
 *
 * The kernel tells of a death only when the dead process's memory is gone, which takes tens of
 * milliseconds for a gigabyte. So a handler for SEGV, BUS, ILL, FPE, ABRT and SYS first voids every
 * registered lease for good, then sends each registered datagram, and then makes way for whatever
 * the program had in place before: its own handler is called, the default action ends the process
 * with the right status and core dump. If the program's handler jumps back to life, the leases
 * stay void.
 *
 * Opt-in: nothing happens to a program's signals unless it installs this. Install after the
 * program's own handlers; handlers that are set later simply replace ours.
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

/* Installs the handlers, once for each process (again: counts), and an alternate stack for this
 * thread if it has none. BATON_EIO: the system refused. */
int fatal_install(struct baton_error *reterr);
/* Undoes the matching install; the last one puts the earlier handlers back where ours still
 * stand. */
void fatal_uninstall(void);

/* An alternate stack for the calling thread, so that its stack overflows are caught too. It lasts
 * as long as the process. BATON_ENOMEM. */
int fatal_guard_thread(void);

/* Returns a slot ≥ 0, or BATON_ETOOBIG. */
int fatal_add(const struct fatal_entry *entry);
void fatal_set_fd(int slot, int fd);
/* When it returns, no handler that starts later sees the entry. */
void fatal_remove(int slot);

#endif

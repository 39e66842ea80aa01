/* Programs that baton-detector starts and may lose: each reads strangers' bytes behind fences.
 *
 *   parent   helper_start … helper_kill
 *   child    helper_begin, first in its main()
 *
 * Memory and descriptors go one way: helper_share and helper_send of the parent, helper_receive of
 * the child. What a child says is received by recv(2) alone, so that no descriptor comes with it.
 *
 * libc only; any thread.
 */
#ifndef DETECTOR_HELPER_HELPER_H
#define DETECTOR_HELPER_HELPER_H

#include "base/error.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum {
    HELPER_FD = 3, /* the socket that a helper inherits; a file may follow */
    HELPER_ENVIRONMENT_MAX = 16,
    HELPER_PASSED = 2, /* descriptors that a helper or a message can take along */
    HELPER_SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW,
};

/* The path of the program `name`: beside this one, or in the folder of a build or an installation.
 * False: not found, and `ret` is the last path that was tried. */
bool helper_find(char ret[PATH_MAX], const char *name);

/* The variables of this process's environment that loaders, drivers and sanitizers need, without
 * its secrets; and a request for huge pages for malloc, unless GLIBC_TUNABLES is set. The strings
 * are borrowed; NULL ends them. */
void helper_environment(char *ret[HELPER_ENVIRONMENT_MAX]);

/* A helper that was started. */
struct helper {
    pid_t pid;  /* 0: it has ended */
    int socket; /* the caller's to close */
};

/* Starts `program` (NULL: the one that helper_find() finds) as `name`. It has the other end of the
 * socket, whose messages are datagrams, as HELPER_FD, and `file` (borrowed) next to it unless that
 * is -1. Input and output are nowhere, errors are ours. Returns BATON_EUNAVAILABLE: the program is
 * not found or cannot be started. */
int helper_start(struct helper *ret, const char *program, const char *name, int file,
                 struct baton_error *reterr);
/* Waits for the helper's own end, for `wait_ms` at most. True: it has ended, with the status in
 * `ret`, which is 0 if it was waited for before. */
bool helper_wait(struct helper *helper, int wait_ms, int *ret);
/* Kills the helper if it still runs, and waits for it; for half a minute, as one that the kernel
 * does not let go (it waits for a disk or a device) is left behind. Returns its status, of its own
 * end if that came first; 0 if it was waited for before, or is left behind. */
int helper_kill(struct helper *helper);

/* A helper dies with its parent, is not dumpable, and keeps `count` inherited descriptors. If it
 * was started by hand it prints `what` it does and ends. */
void helper_begin(int argc, char **argv, const char *what, int count);

/* Makes memory for both sides, sealed by HELPER_SEALS: neither can shorten it while the other one
 * reads, which would be a SIGBUS. Returns the descriptor that the other side maps, or BATON_ENOMEM.
 */
int helper_share(void **ret, const char *name, size_t bytes, struct baton_error *reterr);

/* Sends a datagram; -1 in `fds` ends the descriptors, which stay the caller's. `flags`: MSG_… False
 * and errno: it was not sent. */
bool helper_send(int socket, const void *message, size_t bytes, const int fds[HELPER_PASSED],
                 int flags);
/* Receives a datagram. Returns its length, which may be above `bytes`; 0: the other end is closed;
 * -1 and errno. ret_fds: for helper_close(), -1 where none came; no more than these become ours. */
ssize_t helper_receive(int socket, void *ret, size_t bytes, int ret_fds[HELPER_PASSED], int flags);
void helper_close(const int fds[HELPER_PASSED]);

#endif

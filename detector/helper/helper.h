/* Programs that baton-detector starts and may lose: each reads strangers' bytes behind fences.
 *
 *   parent   helper_start … helper_kill
 *   child    helper_begin, first in its main()
 *
 * Memory and files go one way, and only at the start: the helper inherits them. What it says is
 * received by recv(2) alone, so that no descriptor comes with it.
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
    HELPER_FD = 3, /* the socket that a helper inherits */
    HELPER_FILE,   /* the first of its files; the others follow */
    HELPER_FILES_MAX = 2,
    HELPER_ENVIRONMENT_MAX = 16,
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
 * socket, whose messages are datagrams, as HELPER_FD, `files` (borrowed; -1 ends them) next to it,
 * and nothing else: input and output are nowhere, errors are ours. A recv(2) that waits at our end
 * gives up (EAGAIN) after 50 ms. Returns BATON_EUNAVAILABLE: the program is not found or cannot be
 * started. */
int helper_start(struct helper *ret, const char *program, const char *name, const int *files,
                 struct baton_error *reterr);
/* Waits for the helper's own end, for `wait_ms` at most. True: it has ended, with the status in
 * `ret`, which is 0 if it was waited for before. */
bool helper_wait(struct helper *helper, int wait_ms, int *ret);
/* Kills the helper if it still runs, and waits for it; for half a minute, as one that the kernel
 * does not let go (it waits for a disk or a device) is left behind. Returns its status, of its own
 * end if that came first; 0 if it was waited for before, or is left behind. */
int helper_kill(struct helper *helper);

/* A helper dies with its parent and is not dumpable. If it was started by hand it prints `what` it
 * does and ends. */
void helper_begin(int argc, char **argv, const char *what);

/* Makes memory for both sides, sealed by HELPER_SEALS: neither can shorten it while the other one
 * reads, which would be a SIGBUS. Returns the descriptor that the other side maps, or BATON_ENOMEM.
 */
int helper_share(void **ret, const char *name, size_t bytes, struct baton_error *reterr);

/* Those that are not -1. */
void helper_close(const int *fds, int count);

#endif

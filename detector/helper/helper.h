/* Programs that baton-detector starts and may lose: each reads strangers' bytes behind fences.
 *
 *   parent   helper_find ─▶ helper_spawn (or libuv, with helper_environment)
 *   child    helper_begin, first in its main()
 *
 * libc only; any thread.
 */
#ifndef DETECTOR_HELPER_HELPER_H
#define DETECTOR_HELPER_HELPER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum {
    HELPER_FD = 3,       /* the first descriptor that a helper inherits; the others follow */
    HELPER_FREE_FD = 16, /* from here on none is overwritten while they are put in place */
    HELPER_ENVIRONMENT_MAX = 16,
};

/* Where the program `name` lies: beside this one, where a build or an installation puts it. False:
 * nowhere, and `ret` is the last place looked at. */
bool helper_find(char ret[PATH_MAX], const char *name);

/* Of this process's environment what loaders, drivers and sanitizers need, and none of its secrets;
 * and that malloc shall ask for huge pages, unless GLIBC_TUNABLES says something. The strings are
 * borrowed; NULL ends them. */
void helper_environment(char *ret[HELPER_ENVIRONMENT_MAX]);

/* Starts `program` as `name`. descriptors[i] becomes HELPER_FD + i there; each of them should be
 * HELPER_FREE_FD or above if there are several. Input and output are nowhere, errors are ours.
 * 0 and *ret, for the caller to wait for; or an errno. */
int helper_spawn(pid_t *ret, const char *program, const char *name, const int *descriptors,
                 size_t count);

/* A helper dies with who started it, cannot be looked into, and keeps `count` inherited
 * descriptors. Where it was started by hand it prints `usage` and ends. */
void helper_begin(int argc, char **argv, const char *usage, int count);

/* Asks once more for what a change of user has undone: to die with who started it, and not to be
 * looked into. To be called between the fences of confine.h, as the later one forbids it. False: it
 * cannot be had, or who started it has died. */
bool helper_is_bound(void);

#endif

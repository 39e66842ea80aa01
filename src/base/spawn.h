/* Starts another program with some of our descriptors at the numbers that it knows.
 *
 * By posix_spawn(3), which neither copies the page tables of a large parent nor runs our code in a
 * forked child. Any thread.
 */
#ifndef BASE_SPAWN_H
#define BASE_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

enum { SPAWN_FDS_MAX = 20, SPAWN_NOWHERE = -2 };

struct spawn_fd {
    int from; /* borrowed, or SPAWN_NOWHERE: /dev/null */
    int to;
};

struct spawn {
    const char *program;
    char *const *argv, *const *environment;
    const struct spawn_fd *fds;
    int count;     /* of them, at most SPAWN_FDS_MAX */
    bool is_alone; /* it gets no descriptor above theirs, not even one that is not close-on-exec */
};

/* Its signals are as they are in a program that nobody has changed: none is blocked or ignored. The
 * caller waits for *ret. Returns 0 or an errno. */
int spawn_start(pid_t *ret, const struct spawn *spawn);

#endif

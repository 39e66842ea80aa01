/* Who must be dead before a certificate may say so: the processes that act for the leader.
 *
 * `baton run` starts a program, and that program starts others. They are found by whatever holds:
 *
 *   cgroup   every process in it, whatever it did since; exact; where one could be made
 *   group    the process group; a process leaves it by setsid(2)
 *   marker   "NAME=value" in the environment, inherited by who left the group and lost its parent
 *   parent   children of this process, such as orphans that a subreaper adopted; but for
 *            a guardian, which detaches itself and so becomes one of them
 *
 * libc only: the guardian uses it, and so does the supervisor of `baton run`.
 */
#ifndef GUARDIAN_VICTIMS_H
#define GUARDIAN_VICTIMS_H

#include <stdbool.h>
#include <sys/types.h>

enum { VICTIMS_PATH_MAX = 512, VICTIMS_MARKER_MAX = 64 };

struct victims {
    pid_t group;                     /* 0: none */
    pid_t parent;                    /* 0: none */
    char cgroup[VICTIMS_PATH_MAX];   /* its folder; "": none */
    char marker[VICTIMS_MARKER_MAX]; /* "": none */
};

/* Whether it names nobody at all. */
bool victims_are_none(const struct victims *victims);

/* Sends `signal_number` to every victim that can be found; returns how many living ones there
 * were (zombies are dead), or -1 if /proc cannot be read: then nobody knows. */
int victims_signal(const struct victims *victims, int signal_number);

/* Kills until nobody is left, at most `limit_ms`. False: somebody may still be alive. */
bool victims_kill(const struct victims *victims, int limit_ms);

/* Removes the cgroup's folder, if there is one. The kernel calls it busy for a moment after its
 * last process has died, so this waits, a tenth of a second at most. */
void victims_remove_cgroup(const struct victims *victims);

#endif

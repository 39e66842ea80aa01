/* The processes that act for the leader, and must be dead before a certificate is sent.
 *
 * `baton run` starts a program, and that program starts others. All of them descend from one
 * process, the supervisor (cli/supervisor.h): whatever loses its parent becomes the supervisor's
 * child, and nothing that a descendant does (session, group, cgroup, user, environment) changes
 * that. So the kernel's word that the supervisor has no children left is proof, and the only one.
 *
 *   supervisor   asked to end them all; it replies when none is left. No reply: nothing is certain
 *   marker       "NAME=value" in the environment: programs that a service started for CMD with
 *                CMD's environment (at, cron); killed as well as they are found
 *   cgroup       killed in one go; where one could be made
 *   group        CMD's process group; only if the supervisor died without a reply
 *
 * libc only: the guardian uses it, and so does the supervisor.
 */
#ifndef GUARDIAN_VICTIMS_H
#define GUARDIAN_VICTIMS_H

#include <stdbool.h>
#include <sys/types.h>

enum { VICTIMS_PATH_MAX = 512, VICTIMS_MARKER_MAX = 64 };

/* Between guardian and supervisor, one byte each. */
enum { VICTIMS_END = 'E', VICTIMS_NONE_LEFT = 'N' };

struct victims {
    int supervisor;                  /* a socket to it; 0: none, -1: there is one, out of reach */
    int process;                     /* its pidfd; 0, -1: as above */
    pid_t group;                     /* 0: none */
    char cgroup[VICTIMS_PATH_MAX];   /* its folder; "": none */
    char marker[VICTIMS_MARKER_MAX]; /* "": none */
};

/* Whether it names nobody at all. */
bool victims_are_none(const struct victims *victims);

/* Ends them, in at most `limit_ms`. True: it is certain that none is left. */
bool victims_end(const struct victims *victims, int limit_ms);

/* Lets a supervisor go on that somebody has stopped: it then sees by itself what is due. */
void victims_wake_supervisor(const struct victims *victims);

/* Kills what can be found by cgroup, group and marker, until nothing is found or `limit_ms` have
 * passed. It proves nothing. */
void victims_hunt(const struct victims *victims, int limit_ms);

/* The cgroup and those below it. */
void victims_kill_cgroup(const char *folder);
/* True also where there is none, or it was removed. */
bool victims_cgroup_is_empty(const char *folder);
/* Removes the cgroup's folder, if there is one, and those below it. The kernel calls it busy for a
 * moment after its last process has died, so this waits, a tenth of a second at most. */
void victims_remove_cgroup(const char *folder);

#endif

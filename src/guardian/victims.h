/* The processes that act for the leader, and must be dead before a certificate is sent.
 *
 * `baton run` starts a program, and that program starts others. All of them descend from one
 * process, the supervisor (cli/supervisor.h): a descendant that loses its parent becomes the
 * supervisor's child, whatever its session, group, cgroup, user or environment. So one fact proves
 * that all are dead, and no other does: the kernel reports that the supervisor has no children.
 *
 *   supervisor   is asked to end them all, and replies when none is left. Without a reply nothing
 *                is certain
 *   marker       "NAME=value" in the environment: finds programs that a service (at, cron) started
 *                with CMD's environment; each one found is killed. It also finds "NAME=value-…",
 *                the marker of one command of several
 *   cgroup       is killed as a whole, where one could be made
 *   group        CMD's process group, if only one runs; used only if the supervisor died without a
 *                reply
 *
 * Uses libc only, for the guardian and the supervisor.
 */
#ifndef GUARDIAN_VICTIMS_H
#define GUARDIAN_VICTIMS_H

#include "guardian/suspect.h"

#include <stdbool.h>
#include <sys/types.h>

enum { VICTIMS_PATH_MAX = 512, VICTIMS_MARKER_MAX = SUSPECT_MARKER_MAX, VICTIMS_TOKEN_MAX = 65 };

/* The messages between guardian and supervisor, one byte each. */
enum { VICTIMS_END = 'E', VICTIMS_NONE_LEFT = 'N' };

struct victims {
    int supervisor;                /* a socket to it; 0: none; -1: exists, but cannot be reached */
    int process;                   /* its pidfd; 0, -1: as above */
    pid_t group;                   /* 0: none */
    char cgroup[VICTIMS_PATH_MAX]; /* its directory; "": none */
    char marker[VICTIMS_MARKER_MAX]; /* "": none */
    /* By which an agent knows the supervisor, which says to it that none is left; hexadecimal; "":
     * no agent. The guardian takes no notice. */
    char token[VICTIMS_TOKEN_MAX];
};

/* Whether no process is named. */
bool victims_are_none(const struct victims *victims);

/* Ends the processes, in at most `limit_ms`. True: certainly none is left. */
bool victims_end(const struct victims *victims, int limit_ms);

/* Continues a stopped supervisor, which then reads the lease's end by itself. */
void victims_wake_supervisor(const struct victims *victims);

/* Kills every process that is found by cgroup, group and marker, until none is found (true) or
 * `limit_ms` have passed. True proves nothing: a process may hide. Without victims_has_proc() only
 * the cgroup counts, and the result is false. Returns some seconds after the limit at the latest,
 * whatever other processes do. */
bool victims_hunt(const struct victims *victims, int limit_ms);

/* The same on behalf of a process of `user`: kills only what that user may kill (root: all), since
 * the user has named the marker. False as well as long as others have it. */
bool victims_hunt_for(const struct victims *victims, uid_t user, int limit_ms);

/* Whether /proc is there, and is that of this process's PID namespace: in another one's the numbers
 * are those of other processes. */
bool victims_has_proc(void);

/* Kills the processes of the cgroup and of the cgroups below it. */
void victims_kill_cgroup(const char *folder);
/* True also if `folder` is "" or has been removed. */
bool victims_cgroup_is_empty(const char *folder);
/* Removes the cgroup, if it exists, and the cgroups below it. The kernel reports EBUSY for a moment
 * after the last process has died, so this retries for at most a tenth of a second. */
void victims_remove_cgroup(const char *folder);

#endif

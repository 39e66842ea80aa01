/* Everybody who acts for CMD, and how to be sure that nobody of them is left.
 *
 * Prepared once for each wrapper, before CMD is first started, so that the guardian can be told
 * whom to kill before there is anybody. Three nets, each for who slips through the one before:
 *
 *   process group   CMD and what it starts; left by setsid(2)
 *   cgroup          cannot be left (v2, cgroup.kill); where this process may create one
 *   marker          BATON_RUN=… in the environment; where there is no cgroup
 *
 * and this process becomes a subreaper, so that orphans come to it and not to init.
 */
#ifndef CLI_SUPERVISE_H
#define CLI_SUPERVISE_H

#include "base/error.h"
#include "guardian/victims.h"

#include <stdbool.h>
#include <sys/types.h>

struct supervise {
    struct victims victims; /* .group: of the running CMD; 0: none */
    int procs_fd;           /* cgroup.procs; -1: no cgroup */
};

/* Makes marker and, where it can, a cgroup below this process's own. BATON_EIO: no randomness. */
int supervise_init(struct supervise *supervise, struct baton_error *reterr);
/* Kills whoever is left, removes the cgroup. May be called twice. */
void supervise_fini(struct supervise *supervise);

/* "BATON_RUN=…": one more variable for CMD; valid until fini. */
const char *supervise_variable(const struct supervise *supervise);

/* In the child, between fork and exec; async-signal-safe. `parent` is the forking process. Takes
 * the child to its own process group and cgroup and binds its life to the parent's. False: the
 * parent is dead already, or the kernel refuses; errno says why. The parent's *thread* counts: fork
 * from the one that lives as long as the process. */
bool supervise_enter(const struct supervise *supervise, pid_t parent);
/* In the parent, after the fork. */
void supervise_track(struct supervise *supervise, pid_t child);

/* SIGKILL to all, wherever they are; at most `limit_ms`. False: somebody may be alive. To be called
 * again when CMD itself has ended: what it left behind must not outlive it. */
bool supervise_kill(struct supervise *supervise, int limit_ms);
/* Takes the exit statuses of adopted orphans; not CMD's own. */
void supervise_reap(const struct supervise *supervise);

/* Whether this process was started to ignore it (nohup), as it then goes on doing. */
bool supervise_ignores(int number);

#endif

/* The foreman: the parent of one command, a process between the supervisor and that command.
 *
 *   supervisor ──signals──▶ foreman ──fork──▶ CMD ─▶ its children, and theirs
 *       ▲                      │
 *       └─────────news─────────┘
 *
 * Commands run side by side under one supervisor, and each ends with all of its own. A foreman is a
 * subreaper: if it has no child left, its command and the descendants of that command are dead,
 * whatever session, group, cgroup, user or environment they took (except one that joined another
 * PID namespace). It ends them when its command ends or the supervisor orders it; then it reports
 * and exits. It ends them shortly before the lease ends, too, since the supervisor may be stopped.
 * It dies with the supervisor; what a killed foreman leaves becomes the supervisor's.
 */
#ifndef CLI_FOREMAN_H
#define CLI_FOREMAN_H

#include "cli/order.h"
#include "guardian/victims.h"
#include "provider/lease_cell.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What the supervisor tells it: a signal for the command's process group, or one of these. */
enum {
    FOREMAN_LEAVE = -1, /* kill all descendants; the supervisor finds the others */
    FOREMAN_KILL = 0,   /* kill all descendants, and those that a service started for them */
    FOREMAN_MAX = 28,   /* of the signals' numbers; SIGSYS and its like are nobody's order */
};

/* A signal of its own for each, blocked since before the fork: kill(2) delivers them even where the
 * user has no room left for queued ones (RLIMIT_SIGPENDING), of which any process of that user may
 * have made too many. */
#define FOREMAN_SIGNAL(what) (SIGRTMIN + 1 + (what))
void foreman_add_signals(sigset_t *set);

struct foreman_config {
    const char *marker;              /* of the run; the command's begins with it (victims.h) */
    const char *cgroup;              /* of the run; "": none */
    const sigset_t *ignored;         /* signals that the command ignores */
    const struct lease_watch *lease; /* the command ends before it does; NULL: it may go on */
    const struct order *order;       /* ORDER_START */
    int words;                       /* descriptor of the order's words */
    int output;                      /* of the command; -1: that of baton */
    int progress;                    /* of the command; -1: none */
    int news;                        /* socket to the supervisor */
};

/* Runs in the forked child of `parent`; does not return. Its exit status is 0 once it has reported
 * the command's end, or that there is none. */
_Noreturn void foreman_run(const struct foreman_config *config, pid_t parent);

/* The lease may have ended while a process was delayed. NULL: false. */
bool foreman_is_too_late(const struct lease_watch *lease);
/* The cgroup of a command in that of the run; "": none. */
void foreman_name_cgroup(char ret[VICTIMS_PATH_MAX], const char *run, uint32_t command);

#endif

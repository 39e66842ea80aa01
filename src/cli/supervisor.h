/* The supervisor: the ancestor of all commands of one `baton run`, a process that outlives it.
 *
 *   baton run ──orders──▶ supervisor ──fork──▶ foreman ─▶ CMD ─▶ its children, and theirs
 *      ▲                   │  ▲  ▲ └───fork──▶ foreman ─▶ CMD ─▶ …
 *      └──────news─────────┘  │  └──"end them"── baton-guardian ◀─"none left"─ supervisor
 *                             └── end of the lease, in shared memory
 *
 * Each command has a foreman (cli/foreman.h), so that it ends alone, with all of its own. The
 * supervisor is a subreaper: a descendant that loses its parent, and its foreman, becomes its
 * child, whatever session, group, cgroup, user or environment it has. So if it has no child left,
 * all commands and their descendants are dead (except one that joined another PID namespace). The
 * supervisor ends all of them when `baton run` dies, when it is asked to, and shortly before the
 * lease ends. When `baton run` is dead and no descendant is left, the supervisor reports that to
 * the guardian, or to the agent of the host, empties the record in the data directory
 * (cli/record.h), and exits.
 */
#ifndef CLI_SUPERVISOR_H
#define CLI_SUPERVISOR_H

#include "cli/order.h"
#include "provider/lease_cell.h"

#include <signal.h>
#include <stdbool.h>

/* The supervisor's settings; it is forked, so all of them are borrowed from the parent's memory. */
struct supervisor {
    const char *marker; /* the run's; that of each command begins with it (victims.h) */
    const char *cgroup; /* "": none; each command has one below it */
    const char *agent;  /* socket of an agent that waits for its word; NULL: none */
    const char *token;  /* by which the agent knows it */
    int orders;         /* socket to baton run */
    int guardian;       /* socket to the present guardian */
    int wrapper;        /* pidfd of baton run */
    int record;         /* file of the data directory; -1: none */
    sigset_t ignored;   /* signals that baton run ignored from its start, and so commands do */
    bool guards_lease;  /* ends all commands before the lease ends */
    struct lease_watch *lease;
};

/* Runs in the forked child; does not return. */
_Noreturn void supervisor_run(const struct supervisor *supervisor);

#endif

/* The supervisor: CMD's parent, a process between `baton run` and CMD that outlives both.
 *
 *   baton run ──orders──▶ supervisor ──fork──▶ CMD ─▶ its children, and theirs
 *      ▲                   │  ▲  ▲
 *      └──────news─────────┘  │  └──"end them"── baton-guardian ◀─"none left"─ supervisor
 *                             └── end of the lease, in shared memory
 *
 * It is a subreaper: a descendant that loses its parent becomes its child, whatever session, group,
 * cgroup, user or environment it has. So if it has no child left, CMD and all its descendants are
 * dead (except one that joined another PID namespace). The supervisor ends them when it is asked
 * to, when CMD ends, when `baton run` dies, and shortly before the lease ends. When `baton run` is
 * dead and no descendant is left, the supervisor reports that to the guardian, or to the agent of
 * the host, empties the record in the data directory (cli/record.h), and exits.
 */
#ifndef CLI_SUPERVISOR_H
#define CLI_SUPERVISOR_H

#include "cli/watchdog.h"
#include "guardian/victims.h"
#include "provider/lease_cell.h"

#include <baton/types.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum order_type {
    ORDER_START = 1, /* .epoch, .node, .election */
    ORDER_SIGNAL,    /* .number, to CMD's process group */
    ORDER_KILL,      /* kills all descendants */
};

struct order {
    enum order_type type;
    int number;
    uint64_t epoch;
    char node[BATON_NAME_MAX];
    char election[BATON_NAME_MAX];
};

enum news_type {
    NEWS_STARTED = 1, /* .value: CMD's process id */
    NEWS_REFUSED,     /* .value: errno */
    NEWS_ENDED,       /* .value: CMD's wait status; none of its descendants is left */
};

struct news {
    enum news_type type;
    int value;
    bool is_overdue; /* ENDED: the supervisor ended CMD because the lease was about to end */
};

/* The supervisor's settings; it is forked, so all of them are borrowed from the parent's memory. */
struct supervisor {
    char *const *argv; /* CMD's arguments, ended by NULL */
    const char *marker;
    const struct watchdog *watchdog; /* NULL: none */
    const char *cgroup;              /* "": none */
    const char *agent;               /* socket of an agent that waits for its word; NULL: none */
    const char *token;               /* by which the agent knows it */
    int procs_fd;                    /* the cgroup's cgroup.procs; -1: none */
    int orders;                      /* socket to baton run */
    int guardian;                    /* socket to the present guardian */
    int wrapper;                     /* pidfd of baton run */
    int record;                      /* file of the data directory; -1: none */
    sigset_t ignored;  /* signals that baton run ignored from its start, and so CMD does */
    bool guards_lease; /* ends CMD before the lease ends */
    struct lease_watch *lease;
};

/* Runs in the forked child; does not return. */
_Noreturn void supervisor_run(const struct supervisor *supervisor);

/* Kills every child of the calling thread except `spared`, takes the exit statuses of the dead
 * ones, and returns how many are left; -1: the kernel has no list of children. The kernel uses a
 * child's number again only after its status was taken. */
int supervisor_kill_children(pid_t spared);

#endif

/* The wrapper's side of the supervisor (cli/supervisor.h): starts the supervisor, sends orders to
 * it, and receives its news. cli/cmd.h runs commands by it.
 *
 * Each wrapper starts its supervisor once, before any command, so that the guardian knows from the
 * start which process to ask. Each command gets its own cgroup where this process may make one (v2,
 * with cgroup.kill), and BATON_RUN=… in its environment; both help to kill, but prove nothing.
 */
#ifndef CLI_SUPERVISE_H
#define CLI_SUPERVISE_H

#include "base/error.h"
#include "base/log.h"
#include "cli/supervisor.h"
#include "guardian/victims.h"
#include "options/option.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

struct cmd;

struct supervise {
    struct victims victims; /* .group: process group of the command, if only one runs; 0: none */
    int orders;             /* socket to the supervisor; -1: none */
    pid_t supervisor;
    struct lease_watch *lease; /* shared with the supervisor; give it to the lease's cell */
    bool outlives;             /* as configured */
    struct logger *logger;
    /* Of cmd.c. */
    struct cmd *cmds; /* that run */
    size_t cmd_count;
    uint32_t last_command; /* the number given last */
    uv_poll_t *news;       /* NULL: none runs */
};

struct supervise_config {
    const char *data;  /* directory of the record (cli/record.h); NULL: none */
    const char *agent; /* socket of the agent that holds the election; NULL: none does */
    bool outlives;     /* commands may live on after the lease's end if this process hangs */
    struct logger *logger;
};

/* Call it before there are threads, or descriptors that commands must not have. First ends what an
 * earlier wrapper left behind (cli/record.h). BATON_EIO: another wrapper lives, or a system call
 * failed. */
int supervise_init(struct supervise *supervise, const struct supervise_config *config,
                   struct baton_error *reterr);
/* Does the same with the options of the command line. */
int supervise_begin(struct supervise *supervise, const struct options *options,
                    struct logger *logger, struct baton_error *reterr);
/* Logs what holds the commands. Call it when no option of the program can be refused any more. */
void supervise_tell(const struct supervise *supervise);
/* Ends all commands and the supervisor. May be called twice. */
void supervise_fini(struct supervise *supervise);

/* `rights`: the descriptors of ORDER_START, as many as it says; NULL for other orders, which are
 * not waited for. Returns 0, or an errno: the kernel refuses the rights, or an order without them
 * may pass later; a dead supervisor is found by supervise_hear(). */
int supervise_give(const struct supervise *supervise, const struct order *order,
                   const int rights[ORDER_RIGHTS]);
/* ORDER_KILL, and continues a supervisor that is stopped. */
void supervise_kill(const struct supervise *supervise, uint32_t command);

/* Takes the next news. False: there is none, and `waits` is false. If the supervisor is dead, it is
 * unknown what is left of the commands: all that can be found is killed, and this process ends at
 * once, without handing leadership over. */
bool supervise_hear(const struct supervise *supervise, bool waits, struct news *ret);

/* Logs that the supervisor died while no command ran: this process cannot start one any more. */
void supervise_tell_dead(const struct supervise *supervise);

/* Returns whether this process was started with SIGHUP, SIGINT or SIGQUIT ignored, as nohup(1) and
 * a shell's "&" do. Then this process and its commands ignore that signal. Other signals: false. */
bool supervise_ignores(int number);

#endif

/* The wrapper's side of the supervisor (cli/supervisor.h): starts the supervisor, sends orders to
 * it, and receives its news.
 *
 * Each wrapper starts its supervisor once, before CMD, so that the guardian knows from the start
 * which process to ask. CMD gets its own cgroup where this process may make one (v2, with
 * cgroup.kill), and BATON_RUN=… in its environment; both help to kill, but prove nothing.
 */
#ifndef CLI_SUPERVISE_H
#define CLI_SUPERVISE_H

#include "base/error.h"
#include "base/log.h"
#include "cli/supervisor.h"
#include "guardian/victims.h"
#include "options/option.h"

#include <stdbool.h>
#include <sys/types.h>

struct supervise {
    struct victims victims; /* .group: process group of the running CMD; 0: none */
    int orders;             /* socket to the supervisor; -1: none */
    pid_t supervisor;
    struct lease_watch *lease; /* shared with the supervisor; give it to the lease's cell */
    struct logger *logger;
};

struct supervise_config {
    char *const *argv; /* CMD's arguments, ended by NULL; the program is found through PATH */
    const char *data;  /* directory of the record (cli/record.h); NULL: none */
    const char *agent; /* socket of the agent that holds the election; NULL: none does */
    const struct watchdog *watchdog; /* whose variables CMD gets; NULL: none; outlives CMD */
    bool outlives; /* CMD may live on after the lease's end if this process hangs */
    struct logger *logger;
};

/* Call it before there are threads, or descriptors that CMD must not have. First ends what an
 * earlier wrapper left behind (cli/record.h). BATON_EIO: another wrapper lives, or a system call
 * failed. */
int supervise_init(struct supervise *supervise, const struct supervise_config *config,
                   struct baton_error *reterr);
/* Does the same with the options of the command line. */
int supervise_begin(struct supervise *supervise, const struct options *options, char *const *argv,
                    const struct watchdog *watchdog, struct logger *logger,
                    struct baton_error *reterr);
/* Ends CMD and the supervisor. May be called twice. */
void supervise_fini(struct supervise *supervise);

/* Waits for the exec. BATON_ENOENT: no such program; BATON_EINVAL: it cannot be run; BATON_EIO: a
 * system call failed, or the supervisor is dead. */
int supervise_start(struct supervise *supervise, const struct order *order, const char *program,
                    struct baton_error *reterr);
void supervise_signal(const struct supervise *supervise, int number);
void supervise_kill(const struct supervise *supervise);

/* Reads the news of CMD's end. If the supervisor is dead, it is unknown what is left of CMD: all
 * that can be found is killed, and this process ends at once, without handing leadership over. */
void supervise_hear_end(struct supervise *supervise, struct news *ret);

/* Logs that the supervisor died while CMD did not run: this process cannot start it any more. */
void supervise_tell_dead(const struct supervise *supervise);

/* Returns whether this process was started with SIGHUP, SIGINT or SIGQUIT ignored, as nohup(1) and
 * a shell's "&" do. Then this process and CMD ignore that signal. Other signals: false. */
bool supervise_ignores(int number);

#endif

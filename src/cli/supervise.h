/* The wrapper's side of the supervisor (cli/supervisor.h): starts it before anything else, gives it
 * orders, hears its news.
 *
 * It is started once for each wrapper, before CMD, so that the guardian can be told whom to ask
 * before there is anybody. CMD gets a cgroup of its own where this process may make one (v2, with
 * cgroup.kill), and BATON_RUN=… in its environment; both are further means to kill, not to prove.
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
    struct victims victims; /* .group: of the running CMD; 0: none */
    int orders;             /* socket to the supervisor; -1: none */
    pid_t supervisor;
    struct lease_watch *lease; /* shared with it: to be given to the lease's cell */
    struct logger *logger;
};

struct supervise_config {
    char *const *argv; /* of CMD, ended by NULL; found through PATH */
    const char *data;  /* directory for the record of what is left behind; NULL: none */
    bool outlives;     /* CMD may go on when the lease ends, if this process hangs */
    struct logger *logger;
};

/* To be called before there are threads, or descriptors that CMD must not have. First ends what an
 * earlier wrapper left behind (cli/record.h). BATON_EIO: another lives there, or the system
 * refused. */
int supervise_init(struct supervise *supervise, const struct supervise_config *config,
                   struct baton_error *reterr);
/* The same, as the command line wants it. */
int supervise_begin(struct supervise *supervise, const struct options *options, char *const *argv,
                    struct logger *logger, struct baton_error *reterr);
/* Ends CMD and the supervisor. May be called twice. */
void supervise_fini(struct supervise *supervise);

/* Waits for the exec. BATON_ENOENT: no such program; BATON_EINVAL: it cannot be run; BATON_EIO: the
 * system refused, or the supervisor is dead. */
int supervise_start(struct supervise *supervise, const struct order *order, const char *program,
                    struct baton_error *reterr);
void supervise_signal(const struct supervise *supervise, int number);
void supervise_kill(const struct supervise *supervise);

/* CMD's end. If the supervisor is dead, nobody knows what is left of CMD: what can be found is
 * killed, and this process ends at once, without giving its leadership away. */
void supervise_hear_end(struct supervise *supervise, struct news *ret);

/* Logs that the supervisor died while no CMD lived: this process can start none any more. */
void supervise_tell_dead(const struct supervise *supervise);

/* Whether this process was started with SIGHUP, SIGINT or SIGQUIT ignored, as nohup(1) and a
 * shell's
 * "&" start it. It goes on to ignore that signal, and so does CMD. Other signals: false. */
bool supervise_ignores(int number);

#endif

/* The commands of `baton run` and its like, on the loop: any number, side by side.
 *
 * Their ancestor is the supervisor (cli/supervisor.h). It reports a command's end when no
 * descendant of that command is left either.
 */
#ifndef CLI_CMD_H
#define CLI_CMD_H

#include "base/clock.h"
#include "base/error.h"
#include "options/exit_code.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

struct cmd; /* opaque */
struct supervise;
struct watchdog;

enum { CMD_MAX = 1024 }; /* of one supervisor */

struct cmd_end {
    int exit_code;   /* CMD's own, or 128 + the signal's number */
    bool is_overdue; /* the supervisor ended CMD because the lease was about to end */
};

struct cmd_config {
    uv_loop_t *loop;
    struct supervise *supervise; /* outlives struct cmd */
    char *const *argv;           /* ended by NULL; the program is found through PATH */
    const char *node;            /* value of BATON_NODE */
    const char *election;
    uint64_t epoch;
    const struct watchdog *watchdog; /* whose variables CMD gets; NULL: none */
    const char *const *variables;    /* more of them, "NAME=value", ended by NULL; NULL: none */
    int output;                      /* gets what CMD writes; 0: that of this process */
    int progress;                    /* beside an output: CMD finds it by BATON_PROGRESS */
    /* struct cmd is freed when this returns. */
    void (*on_exit)(void *userdata, const struct cmd_end *end);
    /* A second after the first SIGKILL it, or a process of its, is still there. NULL allowed. */
    void (*on_stay)(void *userdata);
    void *userdata;
};

/* Looks for the program as execvp(3) does, so that a wrong name is an error before the election.
 * Errors as for cmd_start. */
int cmd_check(const char *program, struct baton_error *reterr);
/* Returns 127 for a missing program, 126 for one that cannot be run, else 1. */
enum exit_code cmd_exit_code(int code);

/* Waits for the exec. argv and variables are copied, output and progress remain the caller's.
 * BATON_ENOENT: no such program; BATON_EINVAL: it cannot be run; BATON_EIO: a system call failed,
 * or CMD_MAX run. */
int cmd_start(struct cmd **ret, const struct cmd_config *config, struct baton_error *reterr);

pid_t cmd_pid(const struct cmd *cmd);

/* Sends the signal to CMD's process group: in place of SIGHUP, which asks many programs without a
 * terminal to read their files again, SIGTERM. */
void cmd_signal(struct cmd *cmd, int number);
/* Sends SIGTERM and SIGCONT now, SIGKILL at `kill_at`; an earlier limit replaces a later one. */
void cmd_stop(struct cmd *cmd, instant kill_at);
/* Sends SIGKILL at `kill_at`, and no SIGTERM before it. */
void cmd_limit(struct cmd *cmd, instant kill_at);
/* Sends SIGKILL to CMD and all its descendants. */
void cmd_kill(struct cmd *cmd);

#endif

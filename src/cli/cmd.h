/* CMD of `baton run` and `baton once`, on the loop.
 *
 * The supervisor (cli/supervisor.h) is its parent, and reports its end when nothing that it started
 * is left, either.
 */
#ifndef CLI_CMD_H
#define CLI_CMD_H

#include "base/clock.h"
#include "base/error.h"
#include "cli/exit_code.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

struct cmd; /* opaque */
struct supervise;

struct cmd_end {
    int exit_code;   /* CMD's own, or 128 + the signal's number */
    bool is_overdue; /* the supervisor ended it, since the lease was about to end */
};

struct cmd_config {
    uv_loop_t *loop;
    struct supervise *supervise; /* initialised with CMD's arguments; outlives struct cmd */
    const char *program;         /* CMD's name, for errors */
    const char *node;            /* BATON_NODE */
    const char *election;
    uint64_t epoch;
    /* The struct cmd is freed after the call. */
    void (*on_exit)(void *userdata, const struct cmd_end *end);
    void *userdata;
};

/* Looks for the program as execvp(3) does, so that a wrong name is an error before the election and
 * not at its end. BATON_ENOENT, BATON_EINVAL: as cmd_start. */
int cmd_check(const char *program, struct baton_error *reterr);
/* 127: there is no such program; 126: it cannot be run; else 1. */
enum exit_code cmd_exit_code(int code);

/* BATON_ENOENT: no such program; BATON_EINVAL: it cannot be run; BATON_EIO: the system refused. */
int cmd_start(struct cmd **ret, const struct cmd_config *config, struct baton_error *reterr);

pid_t cmd_pid(const struct cmd *cmd);

/* To the whole group. */
void cmd_signal(struct cmd *cmd, int number);
/* SIGTERM and SIGCONT now, SIGKILL at `kill_at`; an earlier limit replaces a later one. */
void cmd_stop(struct cmd *cmd, instant kill_at);
/* SIGKILL at `kill_at`, and no SIGTERM before it. */
void cmd_limit(struct cmd *cmd, instant kill_at);
/* SIGKILL to CMD and all that came of it. */
void cmd_kill(struct cmd *cmd);

#endif

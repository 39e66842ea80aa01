/* A command that runs beside the process within a limit of time: a fence (docs/fencing.md). The
 * guardian's program runs it, in a process of its own, so that neither the end of this process nor
 * the program's own waiting for its children touches it.
 *
 *   chore_start ─▶ baton-guardian --chore ─▶ COMMAND, in a process group of its own
 *        ▲                │ ended, or the limit, or this process has closed its end: the group is
 *        └────report──────┘ killed, and the report says how it went
 */
#ifndef GUARDIAN_CHORE_H
#define GUARDIAN_CHORE_H

#include "base/clock.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    CHORE_FD_REPORT = 3,
    CHORE_INPUT_MAX = 4096, /* less than a pipe holds: writing it never blocks */
};

struct chore {
    const char *command;          /* a program's path; it gets no arguments */
    const char *input;            /* for its standard input */
    const char *variable, *value; /* in its environment */
    span limit;
};

/* *ret_fd: becomes readable when the command has ended, with a report; closing it before ends the
 * command. BATON_ENOENT, BATON_EIO, BATON_ETOOBIG. */
int chore_start(int *ret_fd, const struct chore *chore, struct baton_error *reterr);

struct chore_report {
    int32_t exit_code; /* -1: it ended by a signal, or could not be started */
    int32_t was_in_time;
};

/* False: nothing to read yet. Without a report, because the runner was killed, as a signal. */
bool chore_read(int fd, struct chore_report *ret);

/* The runner's side: the whole program. */
int chore_main(const char *limit_ms, const char *command);

#endif

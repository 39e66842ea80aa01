#include "guardian/chore.h"

#include "base/spawn.h"
#include "guardian/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int spawn_runner(const char *program, const struct chore *chore, int input, int report)
{
    char limit[24], assignment[256];
    char *argv[] = {(char *)"baton-guardian", (char *)"--chore", limit,
                    (char *)chore->command,   assignment,        NULL};
    const struct spawn_fd fds[] = {{input, STDIN_FILENO}, {report, CHORE_FD_REPORT}};
    const struct spawn spawn = {
        .program = program, .argv = argv, .environment = environ, .fds = fds, .count = 2};
    pid_t first;
    int error;

    (void)snprintf(limit, sizeof(limit), "%lld", (long long)(chore->limit.ns / 1000000));
    (void)snprintf(assignment, sizeof(assignment), "%s=%s", chore->variable, chore->value);
    error = spawn_start(&first, &spawn);
    while (error == 0 && waitpid(first, NULL, 0) < 0 && errno == EINTR) {
    } /* it ends as soon as it has forked */
    return error;
}

/* Both ends are close-on-exec, and `ret[0]` does not block. */
static bool open_report(int ret[2])
{
    return pipe2(ret, O_CLOEXEC) == 0 && fcntl(ret[0], F_SETFL, O_NONBLOCK) == 0;
}

static bool open_input(int ret[2], const char *text)
{
    size_t bytes = strlen(text);

    return pipe2(ret, O_CLOEXEC) == 0 && write(ret[1], text, bytes) == (ssize_t)bytes;
}

static void close_both(const int pair[2])
{
    for (int i = 0; i < 2; i++) {
        if (pair[i] >= 0) {
            (void)close(pair[i]);
        }
    }
}

int chore_start(int *ret_fd, const struct chore *chore, struct baton_error *reterr)
{
    char program[PATH_MAX];
    int input[2] = {-1, -1}, report[2] = {-1, -1};
    int error = EIO;

    if (strlen(chore->input) > CHORE_INPUT_MAX) {
        return error_set(reterr, BATON_ETOOBIG, "%s: its input is too long", chore->command);
    }
    if (!guardian_find(program, sizeof(program))) {
        return error_set(reterr, BATON_ENOENT, "%s: there is no baton-guardian to run it",
                         chore->command);
    }
    if (open_input(input, chore->input) && open_report(report)) {
        error = spawn_runner(program, chore, input[0], report[1]);
    }
    close_both(input);
    if (error != 0) {
        close_both(report);
        return error_set(reterr, BATON_EIO, "%s: cannot be started: %s", chore->command,
                         strerror(error));
    }
    (void)close(report[1]);
    *ret_fd = report[0];
    return BATON_OK;
}

bool chore_read(int fd, struct chore_report *ret)
{
    ssize_t bytes = read(fd, ret, sizeof(*ret));

    if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }
    if (bytes != (ssize_t)sizeof(*ret)) {
        *ret = (struct chore_report){.exit_code = -1};
    }
    return true;
}

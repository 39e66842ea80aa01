#include "guardian/chore.h"

#include "guardian/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Above the runner's fixed numbers, as in spawn.c. */
static int lift(int fd)
{
    int lifted = fcntl(fd, F_DUPFD_CLOEXEC, CHORE_FD_REPORT + 1);

    (void)close(fd);
    return lifted;
}

static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    int error;

    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    error = posix_spawnattr_setsigmask(attributes, &none);
    error = error ? error : posix_spawnattr_setsigdefault(attributes, &all);
    return error ? error
                 : posix_spawnattr_setflags(attributes,
                                            POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

static int spawn_runner(const char *program, const struct chore *chore, int input, int report)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char limit[24], assignment[256];
    char *argv[] = {(char *)"baton-guardian", (char *)"--chore", limit,
                    (char *)chore->command,   assignment,        NULL};
    pid_t first;
    int error;

    (void)snprintf(limit, sizeof(limit), "%lld", (long long)(chore->limit.ns / 1000000));
    (void)snprintf(assignment, sizeof(assignment), "%s=%s", chore->variable, chore->value);
    if (posix_spawn_file_actions_init(&actions) != 0) {
        return ENOMEM;
    }
    if (posix_spawnattr_init(&attributes) != 0) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return ENOMEM;
    }
    error = set_attributes(&attributes);
    error = error ? error : posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    error = error ? error : posix_spawn_file_actions_adddup2(&actions, report, CHORE_FD_REPORT);
    error = error ? error : posix_spawn(&first, program, &actions, &attributes, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    while (error == 0 && waitpid(first, NULL, 0) < 0 && errno == EINTR) {
    } /* it ends as soon as it has forked */
    return error;
}

/* Both ends are close-on-exec, and `ret[0]` does not block. */
static bool open_report(int ret[2])
{
    if (pipe2(ret, O_CLOEXEC) != 0) {
        return false;
    }
    ret[1] = lift(ret[1]);
    return ret[1] >= 0 && fcntl(ret[0], F_SETFL, O_NONBLOCK) == 0;
}

static bool open_input(int ret[2], const char *text)
{
    size_t bytes = strlen(text);

    if (pipe2(ret, O_CLOEXEC) != 0) {
        return false;
    }
    ret[0] = lift(ret[0]);
    return ret[0] >= 0 && write(ret[1], text, bytes) == (ssize_t)bytes;
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

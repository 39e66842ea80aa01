#include "base/spawn.h"

#include "base/invariant.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

static int add_files(posix_spawn_file_actions_t *files, const struct spawn *spawn,
                     const int *copies, int end)
{
    int error = 0;

    for (int i = 0; i < spawn->count && error == 0; i++) {
        int to = spawn->fds[i].to;
        error = copies[i] < 0 ? posix_spawn_file_actions_addopen(files, to, "/dev/null", O_RDWR, 0)
                              : posix_spawn_file_actions_adddup2(files, copies[i], to);
    }
    return error != 0 || !spawn->is_alone ? error
                                          : posix_spawn_file_actions_addclosefrom_np(files, end);
}

static int start(pid_t *ret, const struct spawn *spawn, const int *copies, int end)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int error;

    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)posix_spawn_file_actions_init(&files); /* in glibc none of these can fail */
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setsigdefault(&attributes, &all);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    error = add_files(&files, spawn, copies, end);
    error = error ? error
                  : posix_spawn(ret, spawn->program, &files, &attributes, spawn->argv,
                                spawn->environment);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&files);
    return error;
}

/* Each is copied above all numbers of the new program first, so that placing one descriptor cannot
 * overwrite the next. */
int spawn_start(pid_t *ret, const struct spawn *spawn)
{
    int copies[SPAWN_FDS_MAX], end = 0, error = 0;

    INVARIANT(spawn->count <= SPAWN_FDS_MAX);
    for (int i = 0; i < spawn->count; i++) {
        end = spawn->fds[i].to >= end ? spawn->fds[i].to + 1 : end;
    }
    for (int i = 0; i < spawn->count; i++) {
        int from = spawn->fds[i].from;
        copies[i] = from == SPAWN_NOWHERE ? -1 : fcntl(from, F_DUPFD_CLOEXEC, end);
        error = from != SPAWN_NOWHERE && copies[i] < 0 ? errno : error;
    }
    error = error ? error : start(ret, spawn, copies, end);
    for (int i = 0; i < spawn->count; i++) {
        if (copies[i] >= 0) {
            (void)close(copies[i]);
        }
    }
    return error;
}

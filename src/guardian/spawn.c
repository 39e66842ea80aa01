/* Uses posix_spawn, which neither copies the page tables of a large parent nor runs our code in a
 * forked child. The guardian, which is tiny, forks and detaches by itself. */
#include "guardian/spawn.h"

#include "guardian/protocol.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIBEXEC_RELATIVE "/../libexec/baton/baton-guardian"

/* Looks beside `file`, and in the place where an installation has it relative to `file`. */
static bool find_from(char *ret, size_t ret_bytes, const char *file)
{
    static const char *const places[] = {"/baton-guardian", LIBEXEC_RELATIVE};
    const char *slash = strrchr(file, '/');

    for (size_t i = 0; slash != NULL && i < sizeof(places) / sizeof(places[0]); i++) {
        int length = snprintf(ret, ret_bytes, "%.*s%s", (int)(slash - file), file, places[i]);
        if (length > 0 && (size_t)length < ret_bytes && access(ret, X_OK) == 0) {
            return true;
        }
    }
    return false;
}

/* A foreign program may lie anywhere, so the library's own file is tried too. */
bool guardian_find(char *ret, size_t ret_bytes)
{
    char program[PATH_MAX];
    ssize_t bytes = readlink("/proc/self/exe", program, sizeof(program) - 1);
    static const char here; /* an address in this library */
    Dl_info library;

    if (bytes > 0) {
        program[bytes] = '\0';
        if (find_from(ret, ret_bytes, program)) {
            return true;
        }
    }
    if (dladdr(&here, &library) != 0 && library.dli_fname &&
        find_from(ret, ret_bytes, library.dli_fname)) {
        return true;
    }
    (void)snprintf(ret, ret_bytes, "%s", BATON_LIBEXECDIR "/baton-guardian");
    return access(ret, X_OK) == 0;
}

/* Duplicates a descriptor above the guardian's fixed numbers, so that placing one descriptor cannot
 * overwrite the next. */
static int lift(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, GUARDIAN_FD_SHARED + 1);
}

static int spawn_with(pid_t *ret_first, const char *program, const int lifted[3])
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    char *argv[] = {(char *)"baton-guardian", (char *)"--inherited", NULL};
    int error;

    if (posix_spawn_file_actions_init(&actions) != 0) {
        return ENOMEM;
    }
    if (posix_spawnattr_init(&attributes) != 0) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return ENOMEM;
    }
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    error = posix_spawnattr_setsigmask(&attributes, &none);
    error = error ? error : posix_spawnattr_setsigdefault(&attributes, &all);
    error = error ? error
                  : posix_spawnattr_setflags(&attributes,
                                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    for (int i = 0; i < 3 && error == 0; i++) {
        error = posix_spawn_file_actions_adddup2(&actions, lifted[i], GUARDIAN_FD_SOCKET + i);
    }
    error = error ? error : posix_spawn(ret_first, program, &actions, &attributes, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    return error;
}

int guardian_spawn(pid_t *ret_first, const char *program,
                   const struct spawn_descriptors *descriptors, struct baton_error *reterr)
{
    int lifted[3] = {lift(descriptors->socket), lift(descriptors->parent),
                     lift(descriptors->shared)};
    int error = lifted[0] < 0 || lifted[1] < 0 || lifted[2] < 0
                    ? errno
                    : spawn_with(ret_first, program, lifted);

    for (int i = 0; i < 3; i++) {
        if (lifted[i] >= 0) {
            (void)close(lifted[i]);
        }
    }
    if (error != 0) {
        return error_set(reterr, error == ENOENT ? BATON_ENOENT : BATON_EIO,
                         "guardian %s: cannot be started: %s", program, strerror(error));
    }
    return 0;
}

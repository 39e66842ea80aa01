/* posix_spawn, because it neither copies the page tables of a large parent nor runs any code of
 * ours in a half-forked child; what it cannot do (to detach) the tiny guardian does itself. */
#include "guardian/spawn.h"

#include "guardian/guardian.h"
#include "guardian/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIBEXEC_RELATIVE "/../libexec/baton/baton-guardian"

bool guardian_find(char *ret, size_t ret_bytes)
{
    static const char *const places[] = {"/baton-guardian", LIBEXEC_RELATIVE};
    char folder[PATH_MAX];
    ssize_t bytes = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
    char *slash;

    if (bytes > 0) {
        folder[bytes] = '\0';
        slash = strrchr(folder, '/');
        for (size_t i = 0; slash != NULL && i < sizeof(places) / sizeof(places[0]); i++) {
            *slash = '\0';
            int length = snprintf(ret, ret_bytes, "%s%s", folder, places[i]);
            if (length > 0 && (size_t)length < ret_bytes && access(ret, X_OK) == 0) {
                return true;
            }
        }
    }
    (void)snprintf(ret, ret_bytes, "%s", BATON_LIBEXECDIR "/baton-guardian");
    return access(ret, X_OK) == 0;
}

/* A copy above the places that the guardian's own descriptors go to, so that setting one of them
 * cannot overwrite the next. */
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

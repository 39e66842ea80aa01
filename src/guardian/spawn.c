/* The guardian, which is tiny, forks and detaches by itself. */
#include "guardian/spawn.h"

#include "base/spawn.h"
#include "guardian/protocol.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
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

int guardian_spawn(pid_t *ret_first, const char *program,
                   const struct spawn_descriptors *descriptors, struct baton_error *reterr)
{
    char *argv[] = {(char *)"baton-guardian", (char *)"--inherited", NULL};
    const struct spawn_fd fds[] = {{descriptors->socket, GUARDIAN_FD_SOCKET},
                                   {descriptors->parent, GUARDIAN_FD_PARENT},
                                   {descriptors->shared, GUARDIAN_FD_SHARED}};
    const struct spawn spawn = {
        .program = program, .argv = argv, .environment = environ, .fds = fds, .count = 3};
    int error = spawn_start(ret_first, &spawn);

    if (error != 0) {
        return error_set(reterr, error == ENOENT ? BATON_ENOENT : BATON_EIO,
                         "guardian %s: cannot be started: %s", program, strerror(error));
    }
    return 0;
}

#include "detector/model/unpack_child.h"

#include "base/error.h"
#include "detector/model/unpack_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FREE_FD = 16 /* above those that the child inherits */ };

static bool find_program(char ret[PATH_MAX])
{
    static const char *const places[] = {"", "/../libexec/baton", "/../bin"};
    char folder[PATH_MAX];
    ssize_t bytes = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
    char *slash;

    folder[bytes > 0 ? bytes : 0] = '\0';
    slash = strrchr(folder, '/');
    for (size_t i = 0; slash != NULL && i < sizeof(places) / sizeof(places[0]); i++) {
        *slash = '\0';
        if (snprintf(ret, PATH_MAX, "%s%s/baton-unpack", folder, places[i]) < PATH_MAX &&
            access(ret, X_OK) == 0) {
            return true;
        }
    }
    (void)snprintf(ret, PATH_MAX, "%s", BATON_LIBEXECDIR "/baton-unpack");
    return access(ret, X_OK) == 0;
}

/* What the loader and sanitizers need, and none of this program's secrets. */
static void pick_environment(char **ret, size_t max)
{
    static const char *const names[] = {
        "LD_LIBRARY_PATH=", "ASAN_OPTIONS=", "UBSAN_OPTIONS=", "TSAN_OPTIONS="};
    size_t count = 0;

    for (char **entry = environ; *entry != NULL; entry++) {
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && count + 1 < max; i++) {
            if (strncmp(*entry, names[i], strlen(names[i])) == 0) {
                ret[count++] = *entry;
            }
        }
    }
    ret[count] = NULL;
}

/* Both descriptors are above FREE_FD, so that none is overwritten by the other. */
static int spawn(pid_t *ret, const char *program, int socket, int archive)
{
    char *argv[] = {(char *)"baton-unpack", (char *)"--inherited", NULL};
    char *environment[16];
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none;
    int errnum;

    pick_environment(environment, sizeof(environment) / sizeof(environment[0]));
    (void)sigemptyset(&none);
    if (posix_spawn_file_actions_init(&files) != 0) {
        return ENOMEM;
    }
    if (posix_spawnattr_init(&attributes) != 0) {
        (void)posix_spawn_file_actions_destroy(&files);
        return ENOMEM;
    }
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    errnum = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    errnum =
        errnum ? errnum
               : posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    errnum = errnum ? errnum : posix_spawn_file_actions_adddup2(&files, socket, UNPACK_SOCKET);
    errnum = errnum ? errnum : posix_spawn_file_actions_adddup2(&files, archive, UNPACK_ARCHIVE);
    errnum = errnum ? errnum : posix_spawn(ret, program, &files, &attributes, argv, environment);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&files);
    return errnum;
}

/* Another opening of the archive, for reading alone and with a place in it of its own. */
static int reopen(int archive_fd)
{
    char path[40];
    int fd, high;

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", archive_fd);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    high = fcntl(fd >= 0 ? fd : archive_fd, F_DUPFD_CLOEXEC, FREE_FD);
    if (fd >= 0) {
        (void)close(fd);
    }
    return high;
}

static int start(struct unpack_child *ret, int archive, const char *program,
                 struct baton_error *reterr)
{
    int sockets[2];
    int theirs, errnum;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
        return error_set(reterr, BATON_EUNAVAILABLE, "socketpair: %s", strerror(errno));
    }
    theirs = fcntl(sockets[1], F_DUPFD_CLOEXEC, FREE_FD);
    errnum = theirs >= 0 ? spawn(&ret->pid, program, theirs, archive) : errno;
    (void)close(sockets[1]);
    if (theirs >= 0) {
        (void)close(theirs);
    }
    if (errnum != 0) {
        (void)close(sockets[0]);
        return error_set(reterr, BATON_EUNAVAILABLE, "%s: cannot be started: %s", program,
                         strerror(errnum));
    }
    ret->socket = sockets[0];
    return 0;
}

int unpack_child_start(struct unpack_child *ret, int archive_fd, const struct archive_rules *rules,
                       struct baton_error *reterr)
{
    const struct unpack_request request = {.archive_bytes_max = rules->archive_bytes_max,
                                           .unpacked_bytes_max = rules->unpacked_bytes_max,
                                           .entries_max = rules->entries_max};
    struct unpack_child child = {.socket = -1};
    char program[PATH_MAX];
    int archive, rc;

    if (rules->program != NULL) {
        (void)snprintf(program, sizeof(program), "%s", rules->program);
    } else if (!find_program(program)) {
        return error_set(reterr, BATON_EUNAVAILABLE,
                         "%s: not found; archives are opened by nobody else: install it", program);
    }
    archive = reopen(archive_fd);
    if (archive < 0) {
        return error_set(reterr, BATON_EIO, "archive: it cannot be opened again: %s",
                         strerror(errno));
    }
    rc = start(&child, archive, program, reterr);
    (void)close(archive);
    if (rc == 0) {
        /* Whether it is still there shows when its answer is awaited. */
        (void)send(child.socket, &request, sizeof(request), MSG_NOSIGNAL);
        *ret = child;
    }
    return rc;
}

static int wait_for(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

int unpack_child_why(struct unpack_child *child, struct baton_error *reterr)
{
    int status;

    (void)kill(child->pid,
               SIGKILL); /* a socket may be closed without an end; a dead one keeps its */
    status = wait_for(child->pid);
    child->pid = 0;
    if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL) {
        return error_set(reterr, BATON_EPROTO,
                         "archive: the process that unpacks it was ended by signal %d (%s); do not "
                         "trust this archive, make it again",
                         WTERMSIG(status), strsignal(WTERMSIG(status)));
    }
    return error_set(reterr, BATON_EUNAVAILABLE,
                     "archive: the process that unpacks it ended without a word (code %d)",
                     WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

void unpack_child_end(struct unpack_child *child)
{
    (void)close(child->socket);
    if (child->pid > 0) {
        (void)kill(child->pid, SIGKILL);
        (void)wait_for(child->pid);
        child->pid = 0;
    }
}

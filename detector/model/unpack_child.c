#include "detector/model/unpack_child.h"

#include "base/error.h"
#include "detector/helper/helper.h"
#include "detector/model/unpack_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Opens the archive again, read-only and with a file position of its own. */
static int reopen(int archive_fd)
{
    char path[40];
    int fd, high;

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", archive_fd);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    high = fcntl(fd >= 0 ? fd : archive_fd, F_DUPFD_CLOEXEC, HELPER_FREE_FD);
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
    theirs = fcntl(sockets[1], F_DUPFD_CLOEXEC, HELPER_FREE_FD);
    errnum = theirs >= 0 ? helper_spawn(&ret->pid, program, "baton-unpack",
                                        (const int[]){theirs, archive}, 2)
                         : errno;
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
    } else if (!helper_find(program, "baton-unpack")) {
        return error_set(reterr, BATON_EUNAVAILABLE,
                         "%s: not found; no other program opens archives: install it", program);
    }
    archive = reopen(archive_fd);
    if (archive < 0) {
        return error_set(reterr, BATON_EIO, "archive: it cannot be opened again: %s",
                         strerror(errno));
    }
    rc = start(&child, archive, program, reterr);
    (void)close(archive);
    if (rc == 0) {
        /* If the child has ended, the wait for its answer reports it. */
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

    /* The child may have closed its socket and still run; if it has ended, its status stays. */
    (void)kill(child->pid, SIGKILL);
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

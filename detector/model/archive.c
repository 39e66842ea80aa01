/* The parent's side: a child reads the archive. */
#include "detector/model/archive.h"

#include "base/clock.h"
#include "base/error.h"
#include "detector/helper/helper.h"
#include "detector/model/unpack_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SILENT_MS = 30000, LOOK_MS = 50 };

struct archive_rules archive_rules_default(void)
{
    return (struct archive_rules){.archive_bytes_max = 1U << 30, .unpacked_bytes_max = 2U << 30};
}

/* ---- The child ------------------------------------------------------------------------------ */

/* Starts the program with its end of the socket and the archive, which it gets read-only and with
 * a file position of its own. Returns 0 or an errno. */
static int spawn(struct unpack_child *child, int theirs, int archive_fd, const char *program)
{
    char path[40];
    int archive, errnum;

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", archive_fd);
    archive = open(path, O_RDONLY | O_CLOEXEC);
    if (archive < 0) {
        return errno;
    }
    errnum = helper_spawn(&child->pid, program, "baton-unpack", (const int[]){theirs, archive}, 2);
    (void)close(archive);
    return errnum;
}

int unpack_child_start(struct unpack_child *ret, int archive_fd, const struct archive_rules *rules,
                       struct baton_error *reterr)
{
    struct unpack_child child = {.socket = -1};
    char program[PATH_MAX];
    int sockets[2], errnum;

    if (rules->program != NULL) {
        (void)snprintf(program, sizeof(program), "%s", rules->program);
    } else if (!helper_find(program, "baton-unpack")) {
        return error_set(reterr, BATON_EUNAVAILABLE,
                         "%s: not found; no other program opens archives: install it", program);
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
        return error_set(reterr, BATON_EUNAVAILABLE, "socketpair: %s", strerror(errno));
    }
    child.socket = sockets[0];
    errnum = spawn(&child, sockets[1], archive_fd, program);
    (void)close(sockets[1]);
    if (errnum != 0) {
        (void)close(child.socket);
        return error_set(reterr, BATON_EUNAVAILABLE, "%s: cannot be started: %s", program,
                         strerror(errnum));
    }
    *ret = child;
    return 0;
}

/* The child may have closed its socket and still run; if it has ended, its status stays. */
static int kill_child(struct unpack_child *child)
{
    int status = 0;

    if (child->pid <= 0) {
        return 0;
    }
    (void)kill(child->pid, SIGKILL);
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR) {
    }
    child->pid = 0;
    return status;
}

void unpack_child_end(struct unpack_child *child)
{
    (void)close(child->socket);
    (void)kill_child(child);
}

/* It has closed its socket: says how it ended. */
static int why_it_ended(struct unpack_child *child, struct baton_error *reterr)
{
    int status = kill_child(child);

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

static bool is_canceled(const struct archive_rules *rules)
{
    return rules->is_canceled != NULL && atomic_load(rules->is_canceled);
}

/* Lets only codes pass that a scan can end with: other codes have a meaning for the store. */
static int accept_error(const struct unpack_message *message, size_t count,
                        struct baton_error *reterr)
{
    int code = message->code;

    if (code != BATON_ETOOBIG && code != BATON_EIO && code != BATON_ENOMEM &&
        code != BATON_EUNAVAILABLE && code != BATON_ENOENT) {
        code = BATON_EPROTO;
    }
    return error_set(reterr, code, "%.*s", (int)count, (const char *)message->data);
}

ssize_t unpack_child_receive(struct unpack_child *child, const struct archive_rules *rules,
                             struct unpack_message *ret, struct baton_error *reterr)
{
    struct pollfd fd = {.fd = child->socket, .events = POLLIN};
    instant begin = clock_now();
    int ready;
    ssize_t got;

    do {
        ready = poll(&fd, 1, LOOK_MS);
        if (is_canceled(rules)) {
            return error_set(reterr, BATON_ECANCELED, "archive: unpacking was given up");
        }
        if (ready <= 0 && instant_since(clock_now(), begin).ns > SPAN_MS(SILENT_MS).ns) {
            return error_set(reterr, BATON_EUNAVAILABLE, /* no word on the archive: a slow disk */
                             "archive: the process that unpacks it was silent for %d s and was "
                             "ended",
                             SILENT_MS / 1000);
        }
    } while (ready <= 0);
    do { /* a child that has ended before it read our last message resets the connection, once */
        got = recv(child->socket, ret, sizeof(*ret), MSG_TRUNC);
    } while (got < 0 && errno == ECONNRESET);
    if (got <= 0) {
        return why_it_ended(child, reterr);
    }
    if (got < UNPACK_HEAD_BYTES || got > (ssize_t)sizeof(*ret) || ret->code > 0 ||
        (ret->code < 0 && got >= UNPACK_HEAD_BYTES + BATON_ERROR_MESSAGE_MAX)) {
        return error_set(reterr, BATON_EPROTO,
                         "archive: the process that unpacks it talks nonsense and was ended");
    }
    got -= UNPACK_HEAD_BYTES;
    return ret->code < 0 ? accept_error(ret, (size_t)got, reterr) : got;
}

/* ---- Unpacking ------------------------------------------------------------------------------ */

static int measure(int fd, const struct archive_rules *rules, uint64_t *ret,
                   struct baton_error *reterr)
{
    struct stat status;

    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        return error_set(reterr, BATON_EINVAL, "archive: it is no file");
    }
    if ((uint64_t)status.st_size > rules->archive_bytes_max) {
        return error_set(reterr, BATON_ETOOBIG, "archive: %llu bytes; at most %llu are allowed",
                         (unsigned long long)status.st_size,
                         (unsigned long long)rules->archive_bytes_max);
    }
    *ret = (uint64_t)status.st_size;
    return 0;
}

int archive_unpack(int archive_fd, int parent_fd, const char *name,
                   const struct archive_rules *rules, struct baton_error *reterr)
{
    struct unpack_child child;
    uint64_t bytes = 0;
    int rc = measure(archive_fd, rules, &bytes, reterr);

    rc = rc ? rc : unpack_child_start(&child, archive_fd, rules, reterr);
    if (rc == 0) {
        rc = archive_write(&child, bytes, parent_fd, name, rules, reterr);
        unpack_child_end(&child);
    }
    return rc;
}

/* The parent's side: a child reads the archive. */
#include "detector/model/archive.h"

#include "base/clock.h"
#include "base/error.h"
#include "detector/model/unpack_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
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

int unpack_child_start(struct helper *ret, int archive_fd, const struct archive_rules *rules,
                       struct baton_error *reterr)
{
    char path[40];
    int archive, rc;

    /* The child gets the archive read-only and with a file position of its own. */
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", archive_fd);
    archive = open(path, O_RDONLY | O_CLOEXEC);
    if (archive < 0) {
        return error_set(reterr, BATON_EUNAVAILABLE, "archive: %s", strerror(errno));
    }
    rc = helper_start(ret, rules->program, "baton-unpack", archive, reterr);
    (void)close(archive);
    return rc;
}

void unpack_child_end(struct helper *child)
{
    (void)close(child->socket);
    (void)helper_kill(child);
}

/* It has closed its socket, and may still run: says how it ended. */
static int why_it_ended(struct helper *child, struct baton_error *reterr)
{
    int status = helper_kill(child);

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

ssize_t unpack_child_receive(struct helper *child, const struct archive_rules *rules,
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

int archive_unpack(struct unpacked *ret, int archive_fd, int folder_fd,
                   const struct archive_rules *rules, struct baton_error *reterr)
{
    struct helper child;
    uint64_t bytes = 0;
    int rc = measure(archive_fd, rules, &bytes, reterr);

    rc = rc ? rc : unpack_child_start(&child, archive_fd, rules, reterr);
    if (rc == 0) {
        rc = archive_write(ret, &child, bytes, folder_fd, rules, reterr);
        unpack_child_end(&child);
    }
    return rc;
}

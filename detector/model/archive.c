/* The parent's side: a child reads the archive, and the parent writes the files. */
#include "detector/model/archive.h"

#include "base/clock.h"
#include "base/error.h"
#include "detector/model/archive_draft.h"
#include "detector/model/unpack_child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK_BYTES = 64 << 10, SILENT_MS = 30000, LOOK_MS = 50 };

struct archive_rules archive_rules_default(void)
{
    return (struct archive_rules){.archive_bytes_max = 1U << 30,
                                  .unpacked_bytes_max = 2U << 30,
                                  .entries_max = ARCHIVE_ENTRIES_MAX};
}

int archive_measure(int fd, const struct archive_rules *rules, uint64_t *ret,
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

/* Receives the child's next message; 0: the child has ended. */
static ssize_t receive(const struct unpack_child *child, const struct archive_rules *rules,
                       struct unpack_message *message, struct baton_error *reterr)
{
    struct pollfd fd = {.fd = child->socket, .events = POLLIN};
    instant begin = clock_now();
    ssize_t got;

    while (poll(&fd, 1, LOOK_MS) <= 0) {
        if (rules->is_canceled != NULL && atomic_load(rules->is_canceled)) {
            return error_set(reterr, BATON_ECANCELED, "archive: unpacking was given up");
        }
        if (instant_since(clock_now(), begin).ns > SPAN_MS(SILENT_MS).ns) {
            return error_set(reterr, BATON_EPROTO,
                             "archive: the process that unpacks it was silent for %d s and was "
                             "ended; fetch or make it again",
                             SILENT_MS / 1000);
        }
    }
    do {
        got = recv(child->socket, message, sizeof(*message), MSG_TRUNC);
    } while (got < 0 && errno == EINTR);
    return got < 0 ? 0 : got;
}

static int follow(struct unpack_child *child, struct archive_draft *to,
                  struct unpack_message *message, struct baton_error *reterr)
{
    bool is_done = false;
    int rc = 0;

    while (rc == 0 && !is_done) {
        ssize_t got = receive(child, to->rules, message, reterr);

        if (got < 0) {
            rc = (int)got;
        } else if (got == 0) {
            rc = unpack_child_why(child, reterr);
        } else if (to->rules->is_canceled != NULL && atomic_load(to->rules->is_canceled)) {
            rc = error_set(reterr, BATON_ECANCELED, "archive: unpacking was given up");
        } else {
            rc = archive_accept(to, message, (size_t)got, &is_done, reterr);
        }
    }
    return rc;
}

static int unpack(struct unpack_child *child, int parent_fd, const char *name,
                  const struct archive_rules *rules, struct baton_error *reterr)
{
    struct unpack_message *message = malloc(sizeof(*message));
    struct archive_draft to;
    int rc;

    if (message == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    rc = archive_draft_open(&to, parent_fd, rules, reterr);
    if (rc == 0) {
        rc = follow(child, &to, message, reterr);
        rc = rc ? rc : archive_draft_end(&to, name, reterr);
        archive_draft_close(&to);
    }
    free(message);
    return rc;
}

int archive_unpack(int archive_fd, int parent_fd, const char *name,
                   const struct archive_rules *rules, struct baton_error *reterr)
{
    struct unpack_child child;
    uint64_t bytes;
    int rc = archive_measure(archive_fd, rules, &bytes, reterr);

    rc = rc ? rc : unpack_child_start(&child, archive_fd, rules, reterr);
    if (rc == 0) {
        rc = unpack(&child, parent_fd, name, rules, reterr);
        unpack_child_end(&child);
    }
    return rc;
}

/* ---- A folder that was unpacked ------------------------------------------------------------- */

int archive_pipeline(struct pipeline *ret, int parent_fd, const char *name,
                     struct baton_error *reterr)
{
    char path[PATH_MAX];
    struct buffer text;
    ssize_t got = 1;
    int fd, rc;

    (void)snprintf(path, sizeof(path), "%s/%s", name, PIPELINE_FILE);
    fd = openat(parent_fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        int errnum = errno;
        return error_set(reterr, error_from_errno(errnum), "open %s: %s", path, strerror(errnum));
    }
    buffer_init(&text, PIPELINE_BYTES_MAX + CHUNK_BYTES);
    while (got > 0 && !text.failed) {
        uint8_t *room = buffer_reserve(&text, CHUNK_BYTES);

        got = room != NULL ? read(fd, room, CHUNK_BYTES) : 0;
        text.bytes += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    rc = got < 0       ? error_set(reterr, BATON_EIO, "read %s: it cannot be read", path)
         : text.failed ? error_set(reterr, BATON_ENOMEM, "read %s: out of memory", path)
                       : pipeline_parse(ret, (const char *)text.data, text.bytes, reterr);
    buffer_fini(&text);
    return rc;
}

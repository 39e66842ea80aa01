/* The parent's side: a child reads the archive, and what it gives is written here. */
#include "detector/model/archive.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "detector/model/unpack_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SILENT_MS = 30000,
    FILE_TRIES = 1000, /* each is lost only to another one that has its file by then */
};

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
    rc = helper_start(ret, rules->program, "baton-unpack", (int[]){archive, -1}, reterr);
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

/* Receives the child's next message: its bytes, or a code. BATON_ECANCELED: see `rules`. */
static ssize_t receive(struct helper *child, const struct archive_rules *rules,
                       struct unpack_message *ret, struct baton_error *reterr)
{
    instant begin = clock_now();
    ssize_t got;

    do { /* a child that has ended before it read our last message resets the connection, once */
        got = recv(child->socket, ret, sizeof(*ret), MSG_TRUNC); /* see helper_start() */
        if (rules->is_canceled != NULL && atomic_load(rules->is_canceled)) {
            return error_set(reterr, BATON_ECANCELED, "archive: unpacking was given up");
        }
        if (got < 0 && instant_since(clock_now(), begin).ns > SPAN_MS(SILENT_MS).ns) {
            return error_set(reterr, BATON_EUNAVAILABLE, /* no word on the archive: a slow disk */
                             "archive: the process that unpacks it was silent for %d s and was "
                             "ended",
                             SILENT_MS / 1000);
        }
    } while (got < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET));
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

/* ---- Its files ------------------------------------------------------------------------------- */

static int failed(struct baton_error *reterr)
{
    int errnum = errno;

    return error_set(reterr, error_from_errno(errnum),
                     "a file of the model cache: %s; make room for it, or set another cache",
                     strerror(errnum));
}

int archive_new_file(int folder_fd, struct baton_error *reterr)
{
    static const char name[] = ARCHIVE_NEW_FILE;
    int fd = -1;

    for (int tries = 0; tries < FILE_TRIES && fd < 0; tries++) {
        (void)unlinkat(folder_fd, name, 0); /* also that of a process that was killed */
        fd = openat(folder_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST) {
            break;
        }
    }
    if (fd < 0) {
        return failed(reterr);
    }
    (void)unlinkat(folder_fd, name, 0);
    return fd;
}

void unpacked_fini(struct unpacked *unpacked)
{
    helper_close(unpacked->files, PIPELINE_MODELS_MAX);
    pipeline_fini(&unpacked->pipeline);
}

struct writing {
    struct helper *child;
    const struct archive_rules *rules;
    uint64_t archive_bytes, total; /* of the archive; of what came out of it */
    int folder_fd;
    struct unpack_message message;
};

static int check_total(const struct writing *to, struct baton_error *reterr)
{
    if (to->total > to->rules->unpacked_bytes_max) {
        return error_set(reterr, BATON_ETOOBIG,
                         "archive: it unpacks to more than %llu bytes, which is the limit",
                         (unsigned long long)to->rules->unpacked_bytes_max);
    }
    if (to->total > ARCHIVE_RATIO_FREE && to->total / ARCHIVE_RATIO_MAX > to->archive_bytes) {
        return error_set(reterr, BATON_ETOOBIG,
                         "archive: %llu bytes of it unpack to more than %d times as many, which is "
                         "the limit",
                         (unsigned long long)to->archive_bytes, ARCHIVE_RATIO_MAX);
    }
    return 0;
}

static int write_part(int fd, const void *bytes, size_t count, struct baton_error *reterr)
{
    const char *at = bytes;

    while (count > 0) {
        ssize_t done = write(fd, at, count);

        if (done < 0 && errno != EINTR) {
            return failed(reterr);
        }
        at += done > 0 ? done : 0;
        count -= done > 0 ? (size_t)done : 0;
    }
    return 0;
}

static int text_fails(const struct writing *to, struct baton_error *reterr)
{
    return to->total > PIPELINE_BYTES_MAX
               ? error_set(reterr, BATON_ETOOBIG, "archive: %s has more than %d bytes",
                           PIPELINE_FILE, PIPELINE_BYTES_MAX)
               : error_set(reterr, BATON_ENOMEM, "archive: out of memory for %s", PIPELINE_FILE);
}

/* Asks the child for a file, whose bytes go to `text`, or if that is NULL to `fd`. */
static int take_file(struct writing *to, const char *name, struct buffer *text, int fd,
                     struct baton_error *reterr)
{
    int rc = 0;
    ssize_t got = 1;

    /* If the child has ended, the wait for its answer reports it. */
    (void)send(to->child->socket, name, strlen(name), MSG_NOSIGNAL);
    while (rc == 0 && (got = receive(to->child, to->rules, &to->message, reterr)) > 0) {
        to->total += (uint64_t)got;
        rc = check_total(to, reterr);
        if (rc == 0 && text == NULL) {
            rc = write_part(fd, to->message.data, (size_t)got, reterr);
        } else if (rc == 0) {
            buffer_put(text, to->message.data, (size_t)got);
            rc = text->failed ? text_fails(to, reterr) : 0;
        }
    }
    return rc == 0 && got < 0 ? (int)got : rc;
}

static int take_model(struct writing *to, const struct pipeline_model *model, int fd,
                      struct baton_error *reterr)
{
    int rc = take_file(to, model->file, NULL, fd, reterr);

    if (rc == BATON_ENOENT) {
        rc = BATON_EPROTO;
        (void)error_wrap(reterr, "pipeline.json: models.%s.file", model->name);
        if (reterr != NULL) {
            reterr->code = rc;
        }
    }
    return rc;
}

/* Returns the descriptor that reads the file, or a code. */
static int write_model(struct writing *to, const struct pipeline_model *model,
                       struct baton_error *reterr)
{
    int fd = archive_new_file(to->folder_fd, reterr), ret = -1;
    int rc = fd < 0 ? fd : take_model(to, model, fd, reterr);
    char path[40];

    if (rc == 0) {
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        ret = open(path, O_RDONLY | O_CLOEXEC);
        rc = ret < 0 ? failed(reterr) : 0;
    }
    if (fd >= 0 && close(fd) != 0 && rc == 0) {
        rc = failed(reterr);
        close(ret);
    }
    return rc == 0 ? ret : rc;
}

int archive_write(struct unpacked *ret, struct helper *child, uint64_t archive_bytes, int folder_fd,
                  const struct archive_rules *rules, struct baton_error *reterr)
{
    struct writing *to = calloc(1, sizeof(*to));
    struct unpacked fresh = {.bytes = 0};
    struct buffer text;
    int rc;

    if (to == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    to->child = child;
    to->rules = rules;
    to->archive_bytes = archive_bytes;
    to->folder_fd = folder_fd;
    buffer_init(&text, PIPELINE_BYTES_MAX);
    memset(fresh.files, -1, sizeof(fresh.files));
    rc = take_file(to, PIPELINE_FILE, &text, -1, reterr);
    rc = rc == BATON_ENOENT ? BATON_EPROTO : rc;
    rc = rc ? rc : pipeline_parse(&fresh.pipeline, (const char *)text.data, text.bytes, reterr);
    buffer_fini(&text);
    for (size_t i = 0; rc == 0 && i < fresh.pipeline.model_count; i++) {
        fresh.files[i] = write_model(to, &fresh.pipeline.models[i], reterr);
        rc = fresh.files[i] < 0 ? fresh.files[i] : 0;
    }
    fresh.bytes = to->total;
    free(to);
    if (rc != 0) {
        unpacked_fini(&fresh);
        return rc;
    }
    *ret = fresh;
    return 0;
}

/* ---- Unpacking ------------------------------------------------------------------------------ */

int archive_unpack(struct unpacked *ret, int archive_fd, int folder_fd,
                   const struct archive_rules *rules, struct baton_error *reterr)
{
    struct stat status = {0};
    struct helper child;
    int rc;

    (void)fstat(archive_fd, &status);
    if ((uint64_t)status.st_size > rules->archive_bytes_max) {
        return error_set(reterr, BATON_ETOOBIG, "archive: %llu bytes; at most %llu are allowed",
                         (unsigned long long)status.st_size,
                         (unsigned long long)rules->archive_bytes_max);
    }
    rc = unpack_child_start(&child, archive_fd, rules, reterr);
    if (rc == 0) {
        rc = archive_write(ret, &child, (uint64_t)status.st_size, folder_fd, rules, reterr);
        unpack_child_end(&child);
    }
    return rc;
}

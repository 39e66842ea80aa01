/* Writes the files of an archive. */
#include "base/error.h"
#include "detector/model/archive.h"
#include "detector/model/unpack_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FILE_TRIES = 1000 }; /* each is lost only to another one that has its file by then */

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
    for (size_t i = 0; i < PIPELINE_MODELS_MAX; i++) {
        if (unpacked->files[i] >= 0) {
            close(unpacked->files[i]);
            unpacked->files[i] = -1;
        }
    }
    buffer_fini(&unpacked->text);
}

/* ---- The files ------------------------------------------------------------------------------ */

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

static int put(int fd, const void *bytes, size_t count, struct baton_error *reterr)
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
    while (rc == 0 &&
           (got = unpack_child_receive(to->child, to->rules, &to->message, reterr)) > 0) {
        to->total += (uint64_t)got;
        rc = check_total(to, reterr);
        if (rc == 0 && text == NULL) {
            rc = put(fd, to->message.data, (size_t)got, reterr);
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
    struct pipeline pipeline = {0};
    struct unpacked fresh;
    int rc;

    if (to == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    to->child = child;
    to->rules = rules;
    to->archive_bytes = archive_bytes;
    to->folder_fd = folder_fd;
    buffer_init(&fresh.text, PIPELINE_BYTES_MAX);
    memset(fresh.files, -1, sizeof(fresh.files));
    rc = take_file(to, PIPELINE_FILE, &fresh.text, -1, reterr);
    rc = rc == BATON_ENOENT ? BATON_EPROTO : rc;
    rc = rc ? rc
            : pipeline_parse(&pipeline, (const char *)fresh.text.data, fresh.text.bytes, reterr);
    for (size_t i = 0; rc == 0 && i < pipeline.model_count; i++) {
        fresh.files[i] = write_model(to, &pipeline.models[i], reterr);
        rc = fresh.files[i] < 0 ? fresh.files[i] : 0;
    }
    fresh.bytes = to->total;
    pipeline_fini(&pipeline);
    free(to);
    if (rc != 0) {
        unpacked_fini(&fresh);
        return rc;
    }
    *ret = fresh;
    return 0;
}

/* Writes the files of an archive into a folder, and reads them again. */
#include "base/error.h"
#include "detector/model/archive.h"
#include "detector/model/digest.h"
#include "detector/model/folder.h"
#include "detector/model/unpack_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CHUNK_BYTES = 64 << 10 };

static int failed(struct baton_error *reterr)
{
    int errnum = errno;

    return error_set(reterr, error_from_errno(errnum),
                     "unpacking an archive: %s; make room for it, or set another cache",
                     strerror(errnum));
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

/* Asks the child for one file. `text` gets its bytes as well, unless it is NULL. */
static int write_file(struct writing *to, const char *name, struct buffer *text,
                      struct baton_error *reterr)
{
    int fd = folder_new_file(to->folder_fd, name, reterr);
    int rc = fd < 0 ? fd : 0;
    ssize_t got = 1;

    /* If the child has ended, the wait for its answer reports it. */
    (void)send(to->child->socket, name, strlen(name), MSG_NOSIGNAL);
    while (rc == 0 &&
           (got = unpack_child_receive(to->child, to->rules, &to->message, reterr)) > 0) {
        to->total += (uint64_t)got;
        rc = check_total(to, reterr);
        if (text != NULL) {
            buffer_put(text, to->message.data, (size_t)got);
            rc = rc == 0 && text->failed ? text_fails(to, reterr) : rc;
        }
        rc = rc ? rc : put(fd, to->message.data, (size_t)got, reterr);
    }
    rc = rc == 0 && got < 0 ? (int)got : rc;
    if (fd >= 0 && close(fd) != 0 && rc == 0) {
        rc = failed(reterr);
    }
    return rc;
}

static int write_pipeline(struct pipeline *ret, struct writing *to, struct baton_error *reterr)
{
    struct buffer text;
    int rc;

    buffer_init(&text, PIPELINE_BYTES_MAX);
    rc = write_file(to, PIPELINE_FILE, &text, reterr);
    rc = rc ? rc : pipeline_parse(ret, (const char *)text.data, text.bytes, reterr);
    buffer_fini(&text);
    return rc == BATON_ENOENT ? BATON_EPROTO : rc;
}

static int write_models(struct writing *to, const struct pipeline *pipeline,
                        struct baton_error *reterr)
{
    int rc = 0;

    for (size_t i = pipeline_file_from(pipeline, 0); rc == 0 && i < pipeline->model_count;
         i = pipeline_file_from(pipeline, i + 1)) {
        rc = write_file(to, pipeline->models[i].file, NULL, reterr);
        if (rc == BATON_ENOENT) {
            rc = BATON_EPROTO;
            (void)error_wrap(reterr, "pipeline.json: models.%s.file", pipeline->models[i].name);
        }
    }
    return rc;
}

/* ---- The sum -------------------------------------------------------------------------------- */

static int add_digest(struct buffer *digests, int folder_fd, const char *name)
{
    int fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    char digest[DIGEST_BYTES];
    int rc = fd >= 0 ? digest_file(fd, digest) : BATON_ECORRUPT;

    if (fd >= 0) {
        close(fd);
    }
    if (rc == 0) {
        buffer_put_text(digests, digest);
    }
    return rc;
}

static int sum(char ret[DIGEST_BYTES], int folder_fd, const struct pipeline *pipeline)
{
    struct buffer digests;
    int rc;

    buffer_init(&digests, (size_t)(PIPELINE_MODELS_MAX + 1) * DIGEST_BYTES);
    rc = add_digest(&digests, folder_fd, PIPELINE_FILE);
    for (size_t i = pipeline_file_from(pipeline, 0); rc == 0 && i < pipeline->model_count;
         i = pipeline_file_from(pipeline, i + 1)) {
        rc = add_digest(&digests, folder_fd, pipeline->models[i].file);
    }
    rc = rc ? rc : digests.failed ? BATON_ENOMEM : digest_of(digests.data, digests.bytes, ret);
    buffer_fini(&digests);
    return rc;
}

static int write_sum(const struct writing *to, const struct pipeline *pipeline,
                     struct baton_error *reterr)
{
    char text[DIGEST_BYTES];
    int fd, rc = sum(text, to->folder_fd, pipeline);

    if (rc != 0) {
        return error_set(reterr, rc, "unpacking an archive: it cannot be read again");
    }
    fd = folder_new_file(to->folder_fd, SUM_FILE, reterr);
    rc = fd < 0 ? fd : put(fd, text, strlen(text), reterr);
    if (fd >= 0 && close(fd) != 0 && rc == 0) {
        rc = failed(reterr);
    }
    return rc;
}

int archive_check(int folder_fd, const struct pipeline *pipeline)
{
    char text[DIGEST_BYTES], noted[DIGEST_BYTES] = {0};
    int fd = openat(folder_fd, SUM_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    int rc = sum(text, folder_fd, pipeline);

    if (fd >= 0) {
        rc = rc == 0 && read(fd, noted, sizeof(noted) - 1) < 0 ? BATON_ECORRUPT : rc;
        close(fd);
    }
    return rc == BATON_ENOMEM || (rc == 0 && strcmp(text, noted) == 0) ? rc : BATON_ECORRUPT;
}

/* ---- The folder ----------------------------------------------------------------------------- */

int archive_write(struct helper *child, uint64_t archive_bytes, int parent_fd, const char *name,
                  const struct archive_rules *rules, struct baton_error *reterr)
{
    struct writing *to = calloc(1, sizeof(*to));
    struct pipeline pipeline = {0};
    int rc;

    if (to == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    to->child = child;
    to->rules = rules;
    to->archive_bytes = archive_bytes;
    to->folder_fd = draft_new(parent_fd, reterr);
    rc = to->folder_fd < 0 ? to->folder_fd : write_pipeline(&pipeline, to, reterr);
    rc = rc ? rc : write_models(to, &pipeline, reterr);
    rc = rc ? rc : write_sum(to, &pipeline, reterr);
    rc = rc ? rc : draft_take(parent_fd, name, reterr);
    if (to->folder_fd >= 0) {
        close(to->folder_fd);
        (void)folder_remove(parent_fd, DRAFT, NULL); /* unless it was taken */
    }
    pipeline_fini(&pipeline);
    free(to);
    return rc;
}

int archive_text(struct buffer *ret, int parent_fd, const char *name, struct baton_error *reterr)
{
    char path[PATH_MAX];
    ssize_t got = 1;
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s", name, PIPELINE_FILE);
    fd = openat(parent_fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return folder_failed(reterr, "open", path);
    }
    while (got > 0 && !ret->failed) {
        uint8_t *room = buffer_reserve(ret, CHUNK_BYTES);

        got = room != NULL ? read(fd, room, CHUNK_BYTES) : 0;
        ret->bytes += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    return got < 0       ? error_set(reterr, BATON_EIO, "read %s: it cannot be read", path)
           : ret->failed ? error_set(reterr, BATON_ENOMEM, "read %s: out of memory", path)
                         : 0;
}

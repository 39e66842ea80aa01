/* Writes the files of an archive into a draft, and reads them again. The child's messages are not
 * trusted. */
#include "detector/model/archive_int.h"

#include "base/error.h"
#include "detector/model/name.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK_BYTES = 64 << 10 };

static int nonsense(struct baton_error *reterr)
{
    return error_set(reterr, BATON_EPROTO,
                     "archive: the process that unpacks it talks nonsense and was ended");
}

static int no_memory(struct baton_error *reterr)
{
    return error_set(reterr, BATON_ENOMEM, "out of memory");
}

/* ---- One file ------------------------------------------------------------------------------- */

static int failed(struct baton_error *reterr)
{
    int errnum = errno;

    return error_set(reterr, error_from_errno(errnum),
                     "unpacking an archive: %s; make room for it, or set another cache",
                     strerror(errnum));
}

static int put(int fd, const char *at, size_t count, struct baton_error *reterr)
{
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

/* Flushes the open file to the disk and closes it. */
static int sync_file(struct archive_draft *to, struct baton_error *reterr)
{
    int rc = fsync(to->fd) == 0 ? 0 : failed(reterr);

    if (close(to->fd) != 0 && rc == 0) {
        rc = failed(reterr);
    }
    to->fd = -1;
    return rc;
}

/* Finishes the open file, if there is one, on the disk. */
static int finish_file(struct archive_draft *to, struct baton_error *reterr)
{
    int rc;

    if (to->fd < 0) {
        return 0;
    }
    rc = to->left == 0 ? sync_file(to, reterr) : nonsense(reterr);
    if (rc == 0 && !to->has_pipeline) {
        rc = pipeline_parse(&to->pipeline, (const char *)to->text.data, to->text.bytes, reterr);
        to->has_pipeline = rc == 0;
        to->next = rc == 0 ? pipeline_file_from(&to->pipeline, 0) : 0;
    } else if (rc == 0) {
        to->next = pipeline_file_from(&to->pipeline, to->next + 1);
    }
    return rc;
}

/* The name of the file that comes next; NULL: all are there. */
static const char *next_name(const struct archive_draft *to)
{
    return !to->has_pipeline                     ? PIPELINE_FILE
           : to->next < to->pipeline.model_count ? to->pipeline.models[to->next].file
                                                 : NULL;
}

int archive_draft_begin(void *userdata, const char *name, uint64_t bytes,
                        struct baton_error *reterr)
{
    struct archive_draft *to = userdata;
    int rc = finish_file(to, reterr);
    const char *expected = rc == 0 ? next_name(to) : NULL;

    if (rc != 0) {
        return rc;
    }
    if (expected == NULL || strcmp(name, expected) != 0 ||
        (!to->has_pipeline && bytes > PIPELINE_BYTES_MAX)) {
        return nonsense(reterr);
    }
    if (bytes > to->rules->unpacked_bytes_max - to->total) {
        return error_set(reterr, BATON_ETOOBIG,
                         "archive: it unpacks to more than %llu bytes, which is the limit",
                         (unsigned long long)to->rules->unpacked_bytes_max);
    }
    rc = draft_file(&to->draft, name, reterr);
    if (rc < 0) {
        return rc;
    }
    to->fd = rc;
    to->left = bytes;
    to->total += bytes;
    return 0;
}

int archive_draft_take(void *userdata, const void *bytes, size_t count, struct baton_error *reterr)
{
    struct archive_draft *to = userdata;

    if (to->fd < 0 || count > to->left) {
        return nonsense(reterr);
    }
    to->left -= count;
    if (!to->has_pipeline) {
        buffer_put(&to->text, bytes, count);
    }
    return to->text.failed || digest_add(&to->digest, bytes, count) != 0
               ? no_memory(reterr)
               : put(to->fd, bytes, count, reterr);
}

/* ---- The draft ------------------------------------------------------------------------------ */

int archive_draft_open(struct archive_draft *to, int parent_fd, const struct archive_rules *rules,
                       struct baton_error *reterr)
{
    *to = (struct archive_draft){.rules = rules, .fd = -1, .draft.fd = -1};
    buffer_init(&to->text, PIPELINE_BYTES_MAX);
    return digest_begin(&to->digest) == 0 ? draft_new(&to->draft, parent_fd, reterr)
                                          : no_memory(reterr);
}

int archive_draft_end(struct archive_draft *to, const char *name, struct baton_error *reterr)
{
    char sum[DIGEST_BYTES];
    int rc = finish_file(to, reterr);

    rc = rc ? rc : next_name(to) != NULL ? nonsense(reterr) : 0;
    rc = rc ? rc : digest_end(&to->digest, sum) != 0 ? no_memory(reterr) : 0;
    if (rc == 0) {
        rc = to->fd = draft_file(&to->draft, SUM_FILE, reterr);
        rc = rc < 0 ? rc : put(to->fd, sum, strlen(sum), reterr);
        rc = rc ? rc : sync_file(to, reterr);
    }
    return rc ? rc : draft_take(&to->draft, name, reterr);
}

void archive_draft_close(struct archive_draft *to)
{
    if (to->fd >= 0) {
        close(to->fd);
    }
    draft_drop(&to->draft);
    pipeline_fini(&to->pipeline);
    digest_fini(&to->digest);
    buffer_fini(&to->text);
}

/* ---- The child's messages ------------------------------------------------------------------- */

static int accept_file(struct archive_draft *to, const struct unpack_message *message, size_t count,
                       struct baton_error *reterr)
{
    char name[NAME_BYTES_MAX + 1];

    if (count == 0 || count > NAME_BYTES_MAX || memchr(message->data, 0, count) != NULL) {
        return nonsense(reterr);
    }
    memcpy(name, message->data, count);
    name[count] = '\0';
    return archive_draft_begin(to, name, message->bytes, reterr);
}

/* Lets only codes pass that a scan can end with: other codes have a meaning for the store. */
static int accept_error(const struct unpack_message *message, size_t count,
                        struct baton_error *reterr)
{
    int code = message->code;

    if (code >= 0 || count >= BATON_ERROR_MESSAGE_MAX) {
        return nonsense(reterr);
    }
    if (code != BATON_ETOOBIG && code != BATON_EIO && code != BATON_ENOMEM &&
        code != BATON_EUNAVAILABLE && code != BATON_EINVAL) {
        code = BATON_EPROTO;
    }
    return error_set(reterr, code, "%.*s", (int)count, (const char *)message->data);
}

int archive_accept(struct archive_draft *to, const struct unpack_message *message, size_t bytes,
                   bool *is_done, struct baton_error *reterr)
{
    size_t count = bytes - UNPACK_HEAD_BYTES;

    if (bytes < UNPACK_HEAD_BYTES || bytes > sizeof(*message)) {
        return nonsense(reterr);
    }
    switch (message->type) {
    case UNPACK_FILE:
        return accept_file(to, message, count, reterr);
    case UNPACK_DATA:
        return archive_draft_take(to, message->data, count, reterr);
    case UNPACK_DONE:
        *is_done = true;
        return 0;
    case UNPACK_ERROR:
        return accept_error(message, count, reterr);
    default:
        return nonsense(reterr);
    }
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

static int add_file(struct digest *digest, int folder_fd, const char *name)
{
    int fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    int rc = fd >= 0 ? digest_add_file(digest, fd) : BATON_ECORRUPT;

    if (fd >= 0) {
        close(fd);
    }
    return rc;
}

int archive_check(int folder_fd, const struct pipeline *pipeline)
{
    char sum[DIGEST_BYTES], noted[DIGEST_BYTES] = {0};
    struct digest digest = {0};
    int fd = openat(folder_fd, SUM_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    int rc = digest_begin(&digest);

    rc = rc ? rc : add_file(&digest, folder_fd, PIPELINE_FILE);
    for (size_t i = pipeline_file_from(pipeline, 0); rc == 0 && i < pipeline->model_count;
         i = pipeline_file_from(pipeline, i + 1)) {
        rc = add_file(&digest, folder_fd, pipeline->models[i].file);
    }
    rc = rc ? rc : digest_end(&digest, sum);
    digest_fini(&digest);
    if (fd >= 0) {
        rc = rc == 0 && read(fd, noted, sizeof(noted) - 1) < 0 ? BATON_ECORRUPT : rc;
        close(fd);
    }
    return rc == BATON_ENOMEM || (rc == 0 && strcmp(sum, noted) == 0) ? rc : BATON_ECORRUPT;
}

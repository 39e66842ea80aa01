/* Writes the files of an archive into a draft of a folder, and reads them again. */
#include "detector/model/archive_int.h"

#include "base/buffer.h"
#include "base/error.h"
#include "detector/model/digest.h"
#include "detector/model/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK_BYTES = 64 << 10 };

int archive_nonsense(struct baton_error *reterr)
{
    return error_set(reterr, BATON_EPROTO,
                     "archive: the process that unpacks it talks nonsense and was ended");
}

static int no_memory(struct baton_error *reterr)
{
    return error_set(reterr, BATON_ENOMEM, "out of memory");
}

static int failed(struct baton_error *reterr)
{
    int errnum = errno;

    return error_set(reterr, error_from_errno(errnum),
                     "unpacking an archive: %s; make room for it, or set another cache",
                     strerror(errnum));
}

/* ---- One file ------------------------------------------------------------------------------- */

struct writing {
    const struct archive_rules *rules;
    struct draft draft;
    int fd;               /* of the file that is being written; -1: none */
    bool has_size;        /* of that file */
    uint64_t left, total; /* bytes still missing of that file; bytes announced of all */
    struct digest digest; /* of all bytes so far */
    struct buffer *text;  /* gets the bytes as well; NULL: none does */
};

static int begin(void *userdata, uint64_t bytes, struct baton_error *reterr)
{
    struct writing *to = userdata;

    if (to->has_size || (to->text != NULL && bytes > PIPELINE_BYTES_MAX)) {
        return archive_nonsense(reterr);
    }
    if (bytes > to->rules->unpacked_bytes_max - to->total) {
        return error_set(reterr, BATON_ETOOBIG,
                         "archive: it unpacks to more than %llu bytes, which is the limit",
                         (unsigned long long)to->rules->unpacked_bytes_max);
    }
    to->has_size = true;
    to->left = bytes;
    to->total += bytes;
    return 0;
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

static int take(void *userdata, const void *bytes, size_t count, struct baton_error *reterr)
{
    struct writing *to = userdata;

    if (!to->has_size || count > to->left) {
        return archive_nonsense(reterr);
    }
    to->left -= count;
    if (to->text != NULL) {
        buffer_put(to->text, bytes, count);
    }
    return (to->text != NULL && to->text->failed) || digest_add(&to->digest, bytes, count) != 0
               ? no_memory(reterr)
               : put(to->fd, bytes, count, reterr);
}

/* Opens a new file of the draft; close_file() follows. */
static int open_file(struct writing *to, const char *name, struct baton_error *reterr)
{
    to->fd = draft_file(&to->draft, name, reterr);
    return to->fd < 0 ? to->fd : 0;
}

/* With code 0, flushes the open file to the disk. */
static int close_file(struct writing *to, int code, struct baton_error *reterr)
{
    if (code == 0 && fsync(to->fd) != 0) {
        code = failed(reterr);
    }
    if (to->fd >= 0 && close(to->fd) != 0 && code == 0) {
        code = failed(reterr);
    }
    return code;
}

static int write_file(struct writing *to, const struct archive_source *source, const char *name,
                      struct baton_error *reterr)
{
    const struct archive_sink sink = {begin, take, to};
    int rc = open_file(to, name, reterr);

    to->has_size = false;
    to->left = 0;
    rc = rc ? rc : source->file(source->userdata, name, &sink, reterr);
    if (rc == 0 && (!to->has_size || to->left > 0)) {
        rc = archive_nonsense(reterr);
    }
    return close_file(to, rc, reterr);
}

/* ---- The folder ----------------------------------------------------------------------------- */

static int write_pipeline(struct pipeline *ret, struct writing *to,
                          const struct archive_source *source, struct baton_error *reterr)
{
    struct buffer text;
    int rc;

    buffer_init(&text, PIPELINE_BYTES_MAX);
    to->text = &text;
    rc = write_file(to, source, PIPELINE_FILE, reterr);
    to->text = NULL;
    rc = rc ? rc : pipeline_parse(ret, (const char *)text.data, text.bytes, reterr);
    buffer_fini(&text);
    return rc;
}

static int write_files(struct writing *to, const struct archive_source *source,
                       const struct pipeline *pipeline, struct baton_error *reterr)
{
    int rc = 0;

    for (size_t i = pipeline_file_from(pipeline, 0); rc == 0 && i < pipeline->model_count;
         i = pipeline_file_from(pipeline, i + 1)) {
        rc = write_file(to, source, pipeline->models[i].file, reterr);
        if (rc == BATON_ENOENT) {
            rc = BATON_EPROTO;
            (void)error_wrap(reterr, "pipeline.json: models.%s.file", pipeline->models[i].name);
        }
    }
    return rc;
}

static int write_sum(struct writing *to, struct baton_error *reterr)
{
    char sum[DIGEST_BYTES];
    int rc =
        digest_end(&to->digest, sum) == 0 ? open_file(to, SUM_FILE, reterr) : no_memory(reterr);

    return rc ? rc : close_file(to, put(to->fd, sum, strlen(sum), reterr), reterr);
}

int archive_write(const struct archive_source *source, int parent_fd, const char *name,
                  const struct archive_rules *rules, struct baton_error *reterr)
{
    struct writing to = {.rules = rules, .fd = -1};
    struct pipeline pipeline = {0};
    int rc = draft_new(&to.draft, parent_fd, reterr);

    if (rc != 0) {
        return rc;
    }
    rc = digest_begin(&to.digest) == 0 ? 0 : no_memory(reterr);
    rc = rc ? rc : write_pipeline(&pipeline, &to, source, reterr);
    rc = rc ? rc : write_files(&to, source, &pipeline, reterr);
    rc = rc ? rc : write_sum(&to, reterr);
    rc = rc ? rc : draft_take(&to.draft, name, reterr);
    draft_drop(&to.draft);
    pipeline_fini(&pipeline);
    digest_fini(&to.digest);
    return rc == BATON_ENOENT ? BATON_EPROTO : rc; /* of the source: pipeline.json is not there */
}

/* ---- A folder that was unpacked ------------------------------------------------------------- */

int archive_text(struct buffer *ret, int parent_fd, const char *name, struct baton_error *reterr)
{
    char path[PATH_MAX];
    ssize_t got = 1;
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s", name, PIPELINE_FILE);
    fd = openat(parent_fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        int errnum = errno;
        return error_set(reterr, error_from_errno(errnum), "open %s: %s", path, strerror(errnum));
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

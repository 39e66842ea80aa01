#include "detector/model/archive_int.h"

#include "base/buffer.h"
#include "base/error.h"
#include "detector/model/nearest.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK_BYTES = 64 << 10 };

static const char pipeline_name[] = "pipeline.json";

struct archive_rules archive_rules_default(void)
{
    return (struct archive_rules){.archive_bytes_max = 1U << 30,
                                  .unpacked_bytes_max = 2U << 30,
                                  .entries_max = ARCHIVE_ENTRIES_MAX};
}

int archive_zip_error(zip_error_t *error, const char *what, struct baton_error *reterr)
{
    int zip_code = zip_error_code_zip(error);
    int code = zip_code == ZIP_ER_MEMORY                            ? BATON_ENOMEM
               : zip_code == ZIP_ER_READ || zip_code == ZIP_ER_SEEK ? BATON_EIO
                                                                    : BATON_EPROTO;

    return error_set(reterr, code, "archive: %s: %s; fetch or make it again", what,
                     zip_error_strerror(error));
}

/* ---- Reading an entry ----------------------------------------------------------------------- */

static int check_total(const struct archive *archive, uint64_t bytes, struct baton_error *reterr)
{
    uint64_t total = archive->unpacked_bytes + bytes;

    if (total > archive->rules->unpacked_bytes_max) {
        return error_set(reterr, BATON_ETOOBIG,
                         "archive: it unpacks to more than %llu bytes, which is the limit",
                         (unsigned long long)archive->rules->unpacked_bytes_max);
    }
    if (total > ARCHIVE_RATIO_FREE && total / ARCHIVE_RATIO_MAX > archive->archive_bytes) {
        return error_set(reterr, BATON_ETOOBIG,
                         "archive: %llu bytes of it unpack to more than %d times as many, which is "
                         "the limit",
                         (unsigned long long)archive->archive_bytes, ARCHIVE_RATIO_MAX);
    }
    return 0;
}

static bool is_canceled(const struct archive *archive)
{
    const atomic_bool *flag = archive->rules->is_canceled;

    return flag != NULL && atomic_load(flag);
}

/* The library compares length and checksum once it is read to its end. */
static int read_all(struct archive *archive, zip_file_t *file, const struct entry *entry,
                    archive_take take, void *userdata, struct baton_error *reterr)
{
    unsigned char *chunk = malloc(CHUNK_BYTES);
    uint64_t done = 0;
    int rc = chunk != NULL ? 0 : error_set(reterr, BATON_ENOMEM, "out of memory");

    while (rc == 0) {
        zip_int64_t got = zip_fread(file, chunk, CHUNK_BYTES);

        if (got < 0) {
            rc = archive_zip_error(zip_file_get_error(file), entry->name, reterr);
        } else if ((uint64_t)got > entry->bytes - done) {
            rc = error_set(reterr, BATON_EPROTO,
                           "archive: %s is longer than the %llu bytes that the archive says",
                           entry->name, (unsigned long long)entry->bytes);
        } else if (is_canceled(archive)) {
            rc = error_set(reterr, BATON_ECANCELED, "archive: unpacking was given up");
        } else if (got == 0) {
            break;
        } else {
            done += (uint64_t)got;
            rc = take(userdata, chunk, (size_t)got, reterr);
        }
    }
    free(chunk);
    if (rc == 0 && done != entry->bytes) {
        return error_set(reterr, BATON_EPROTO, "archive: %s ends after %llu of %llu bytes",
                         entry->name, (unsigned long long)done, (unsigned long long)entry->bytes);
    }
    archive->unpacked_bytes += done;
    return rc;
}

int archive_read(struct archive *archive, const struct entry *entry, archive_take take,
                 void *userdata, struct baton_error *reterr)
{
    int rc = check_total(archive, entry->bytes, reterr);
    zip_file_t *file;

    if (rc != 0) {
        return rc;
    }
    file = zip_fopen_index(archive->zip, entry->index, 0);
    if (file == NULL) {
        return archive_zip_error(zip_get_error(archive->zip), entry->name, reterr);
    }
    rc = read_all(archive, file, entry, take, userdata, reterr);
    (void)zip_fclose(file); /* what was wrong with it was said when its end was read */
    return rc;
}

static int take_into_buffer(void *userdata, const void *bytes, size_t count,
                            struct baton_error *reterr)
{
    struct buffer *buffer = userdata;

    buffer_put(buffer, bytes, count);
    return buffer->failed ? error_set(reterr, BATON_ENOMEM, "out of memory") : 0;
}

static int take_into_file(void *userdata, const void *bytes, size_t count,
                          struct baton_error *reterr)
{
    const unsigned char *at = bytes;
    const int *fd = userdata;

    while (count > 0) {
        ssize_t put = write(*fd, at, count);

        if (put < 0 && errno != EINTR) {
            int errnum = errno;
            return error_set(reterr, error_from_errno(errnum),
                             "unpacking an archive: %s; make room for it, or set another cache",
                             strerror(errnum));
        }
        at += put > 0 ? put : 0;
        count -= put > 0 ? (size_t)put : 0;
    }
    return 0;
}

/* ---- What is unpacked ----------------------------------------------------------------------- */

static int unpack_file(struct archive *archive, const struct draft *draft,
                       const struct entry *entry, struct baton_error *reterr)
{
    int fd = draft_file(draft, entry->name, reterr);
    int rc;

    if (fd < 0) {
        return fd;
    }
    rc = archive_read(archive, entry, take_into_file, &fd, reterr);
    if (rc == 0 && fsync(fd) != 0) {
        int errnum = errno;
        rc = error_set(reterr, error_from_errno(errnum), "unpacking %s: %s", entry->name,
                       strerror(errnum));
    }
    if (close(fd) != 0 && rc == 0) {
        rc = error_set(reterr, BATON_EIO, "unpacking %s: it cannot be closed", entry->name);
    }
    return rc;
}

/* People zip a folder in place of what is in it. */
static int no_pipeline(const struct archive *archive, struct baton_error *reterr)
{
    for (size_t i = 0; i < archive->entry_count; i++) {
        const char *name = archive->entries[i].name;
        const char *slash = strrchr(name, '/');

        if (slash != NULL && strcmp(slash + 1, pipeline_name) == 0) {
            return error_set(reterr, BATON_EPROTO,
                             "archive: %s must be at its top, not in a folder: zip what is in the "
                             "folder \"%.*s\", not the folder",
                             pipeline_name, (int)(slash - name), name);
        }
    }
    return error_set(reterr, BATON_EPROTO, "archive: there is no %s in it", pipeline_name);
}

static int read_pipeline(struct pipeline *ret, struct archive *archive, struct baton_error *reterr)
{
    const struct entry *entry = archive_find(archive, pipeline_name);
    struct buffer text;
    int rc;

    if (entry == NULL) {
        return no_pipeline(archive, reterr);
    }
    if (entry->bytes > PIPELINE_BYTES_MAX) {
        return error_set(reterr, BATON_ETOOBIG, "archive: %s of %llu bytes; at most %d are allowed",
                         pipeline_name, (unsigned long long)entry->bytes, PIPELINE_BYTES_MAX);
    }
    buffer_init(&text, PIPELINE_BYTES_MAX);
    rc = archive_read(archive, entry, take_into_buffer, &text, reterr);
    rc = rc ? rc : pipeline_parse(ret, (const char *)text.data, text.bytes, reterr);
    buffer_fini(&text);
    return rc;
}

static int no_file(const struct archive *archive, const struct pipeline_model *model,
                   struct baton_error *reterr)
{
    struct nearest nearest = {0};
    char text[NEAREST_TEXT_BYTES];

    for (size_t i = 0; i < archive->entry_count; i++) {
        if (!archive->entries[i].is_folder) {
            nearest_try(&nearest, model->file, archive->entries[i].name);
        }
    }
    return error_set(reterr, BATON_EPROTO,
                     "pipeline.json: models.%s.file is \"%s\", which is not in the archive%s",
                     model->name, model->file, nearest_text(&nearest, text));
}

static bool is_unpacked(const struct pipeline *pipeline, size_t model)
{
    bool is_done = strcmp(pipeline->models[model].file, pipeline_name) == 0;

    for (size_t i = 0; i < model; i++) {
        is_done = is_done || strcmp(pipeline->models[i].file, pipeline->models[model].file) == 0;
    }
    return is_done;
}

static int unpack_named(struct archive *archive, const struct draft *draft,
                        const struct pipeline *pipeline, struct baton_error *reterr)
{
    int rc = unpack_file(archive, draft, archive_find(archive, pipeline_name), reterr);

    for (size_t i = 0; rc == 0 && i < pipeline->model_count; i++) {
        const struct entry *entry = archive_find(archive, pipeline->models[i].file);

        if (entry == NULL) {
            rc = no_file(archive, &pipeline->models[i], reterr);
        } else if (!is_unpacked(pipeline, i)) {
            rc = unpack_file(archive, draft, entry, reterr);
        }
    }
    return rc;
}

static int unpack(struct archive *archive, int parent_fd, const char *name,
                  struct baton_error *reterr)
{
    struct pipeline pipeline;
    struct draft draft;
    int rc = archive_list(archive, reterr);

    rc = rc ? rc : read_pipeline(&pipeline, archive, reterr);
    if (rc != 0) {
        return rc;
    }
    rc = draft_new(&draft, parent_fd, reterr);
    if (rc == 0) {
        rc = unpack_named(archive, &draft, &pipeline, reterr);
        rc = rc ? rc : draft_take(&draft, name, reterr);
        draft_drop(&draft);
    }
    pipeline_fini(&pipeline);
    return rc;
}

/* ---- Opening -------------------------------------------------------------------------------- */

static int open_zip(struct archive *archive, int fd, struct baton_error *reterr)
{
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* the library's after success */
    int code = 0;

    archive->zip = own >= 0 ? zip_fdopen(own, ZIP_CHECKCONS, &code) : NULL;
    if (archive->zip == NULL) {
        zip_error_t error;
        int rc;

        zip_error_init_with_code(&error, own >= 0 ? code : ZIP_ER_OPEN);
        rc = code == ZIP_ER_EXISTS
                 ? error_set(reterr, BATON_EPROTO, "archive: a name is there twice")
                 : archive_zip_error(&error, "it cannot be opened", reterr);
        zip_error_fini(&error);
        if (own >= 0) {
            close(own);
        }
        return rc;
    }
    return 0;
}

int archive_unpack(int archive_fd, int parent_fd, const char *name,
                   const struct archive_rules *rules, struct baton_error *reterr)
{
    struct archive archive = {.rules = rules};
    struct stat status;
    int rc;

    if (fstat(archive_fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        return error_set(reterr, BATON_EINVAL, "archive: it is no file");
    }
    archive.archive_bytes = (uint64_t)status.st_size;
    if (archive.archive_bytes > rules->archive_bytes_max) {
        return error_set(reterr, BATON_ETOOBIG, "archive: %llu bytes; at most %llu are allowed",
                         (unsigned long long)archive.archive_bytes,
                         (unsigned long long)rules->archive_bytes_max);
    }
    rc = archive_check_end(archive_fd, archive.archive_bytes, rules->entries_max, reterr);
    rc = rc ? rc : open_zip(&archive, archive_fd, reterr);
    if (rc == 0) {
        rc = unpack(&archive, parent_fd, name, reterr);
        zip_discard(archive.zip);
        free(archive.entries);
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

    (void)snprintf(path, sizeof(path), "%s/%s", name, pipeline_name);
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

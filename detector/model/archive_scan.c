/* Reads an archive; baton-unpack runs this. */
#include "detector/model/archive_int.h"

#include "base/buffer.h"
#include "base/error.h"
#include "detector/model/nearest.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { CHUNK_BYTES = 64 << 10 };

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

/* The library checks length and checksum when the entry is read to its end. */
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
    (void)zip_fclose(file); /* the read to its end has reported any error */
    return rc;
}

static int take_into_buffer(void *userdata, const void *bytes, size_t count,
                            struct baton_error *reterr)
{
    struct buffer *buffer = userdata;

    buffer_put(buffer, bytes, count);
    return buffer->failed ? error_set(reterr, BATON_ENOMEM, "out of memory") : 0;
}

/* ---- Contents for the parent ---------------------------------------------------------------- */

/* A common mistake: the folder was zipped in place of its content. */
static int no_pipeline(const struct archive *archive, struct baton_error *reterr)
{
    for (size_t i = 0; i < archive->entry_count; i++) {
        const char *name = archive->entries[i].name;
        const char *slash = strrchr(name, '/');

        if (slash != NULL && strcmp(slash + 1, PIPELINE_FILE) == 0) {
            return error_set(reterr, BATON_EPROTO,
                             "archive: %s must be at its top, not in a folder: zip what is in the "
                             "folder \"%.*s\", not the folder",
                             PIPELINE_FILE, (int)(slash - name), name);
        }
    }
    return error_set(reterr, BATON_EPROTO, "archive: there is no %s in it", PIPELINE_FILE);
}

/* Parses pipeline.json, and keeps its text for the parent. */
static int read_pipeline(struct pipeline *ret, struct archive *archive,
                         const struct archive_sink *sink, struct baton_error *reterr)
{
    const struct entry *entry = archive_find(archive, PIPELINE_FILE);
    struct buffer text;
    int rc;

    if (entry == NULL) {
        return no_pipeline(archive, reterr);
    }
    if (entry->bytes > PIPELINE_BYTES_MAX) {
        return error_set(reterr, BATON_ETOOBIG, "archive: %s of %llu bytes; at most %d are allowed",
                         PIPELINE_FILE, (unsigned long long)entry->bytes, PIPELINE_BYTES_MAX);
    }
    buffer_init(&text, PIPELINE_BYTES_MAX);
    rc = archive_read(archive, entry, take_into_buffer, &text, reterr);
    rc = rc ? rc : pipeline_parse(ret, (const char *)text.data, text.bytes, reterr);
    if (rc == 0) {
        rc = sink->begin(sink->userdata, PIPELINE_FILE, text.bytes, reterr);
        rc = rc ? rc : sink->take(sink->userdata, text.data, text.bytes, reterr);
        if (rc != 0) {
            pipeline_fini(ret);
        }
    }
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
    bool is_done = strcmp(pipeline->models[model].file, PIPELINE_FILE) == 0;

    for (size_t i = 0; i < model; i++) {
        is_done = is_done || strcmp(pipeline->models[i].file, pipeline->models[model].file) == 0;
    }
    return is_done;
}

static int hand_on(struct archive *archive, const struct entry *entry,
                   const struct archive_sink *sink, struct baton_error *reterr)
{
    int rc = sink->begin(sink->userdata, entry->name, entry->bytes, reterr);

    return rc ? rc : archive_read(archive, entry, sink->take, sink->userdata, reterr);
}

static int hand_on_named(struct archive *archive, const struct pipeline *pipeline,
                         const struct archive_sink *sink, struct baton_error *reterr)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < pipeline->model_count; i++) {
        const struct entry *entry = archive_find(archive, pipeline->models[i].file);

        if (entry == NULL) {
            rc = no_file(archive, &pipeline->models[i], reterr);
        } else if (!is_unpacked(pipeline, i)) {
            rc = hand_on(archive, entry, sink, reterr);
        }
    }
    return rc;
}

static int scan(struct archive *archive, const struct archive_sink *sink,
                struct baton_error *reterr)
{
    struct pipeline pipeline;
    int rc = archive_list(archive, reterr);

    rc = rc ? rc : read_pipeline(&pipeline, archive, sink, reterr);
    if (rc == 0) {
        rc = hand_on_named(archive, &pipeline, sink, reterr);
        pipeline_fini(&pipeline);
    }
    return rc;
}

/* ---- Opening -------------------------------------------------------------------------------- */

/* zip_fdopen() would duplicate the descriptor, which the fences forbid. */
static int open_zip(struct archive *archive, FILE *file, struct baton_error *reterr)
{
    zip_error_t error;
    zip_source_t *source;
    int rc = 0;

    zip_error_init(&error);
    source = zip_source_filep_create(file, 0, -1, &error); /* then the source owns the file */
    if (source == NULL) {
        (void)fclose(file);
    } else {
        archive->zip = zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error);
        if (archive->zip == NULL) {
            zip_source_free(source);
        }
    }
    if (archive->zip == NULL) {
        rc = zip_error_code_zip(&error) == ZIP_ER_EXISTS
                 ? error_set(reterr, BATON_EPROTO, "archive: a name is there twice")
                 : archive_zip_error(&error, "it cannot be opened", reterr);
    }
    zip_error_fini(&error);
    return rc;
}

int archive_scan(FILE *file, const struct archive_rules *rules, const struct archive_sink *sink,
                 struct baton_error *reterr)
{
    struct archive archive = {.rules = rules};
    int rc = archive_measure(fileno(file), rules, &archive.archive_bytes, reterr);

    rc = rc ? rc
            : archive_check_end(fileno(file), archive.archive_bytes, rules->entries_max, reterr);
    if (rc != 0) {
        (void)fclose(file);
        return rc;
    }
    rc = open_zip(&archive, file, reterr);
    if (rc == 0) {
        rc = scan(&archive, sink, reterr);
        zip_discard(archive.zip);
        free(archive.entries);
    }
    return rc;
}

#include "detector/model/archive.h"

#include "base/error.h"
#include "base/text.h"
#include "detector/model/pipeline.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static const uint64_t unpacked_max = UINT64_C(2) << 30;

static int zip_failed(zip_error_t *error, const char *what, struct baton_error *reterr)
{
    int zip_code = zip_error_code_zip(error);

    if (zip_code == ZIP_ER_MEMORY) { /* the process has little; an honest archive needs less */
        return error_set(reterr, BATON_ETOOBIG, "archive: %s: it takes too much memory", what);
    }
    return error_set(reterr,
                     zip_code == ZIP_ER_READ || zip_code == ZIP_ER_SEEK ? BATON_EIO : BATON_EPROTO,
                     "archive: %s: %s; fetch or make it again", what, zip_error_strerror(error));
}

/* ---- The entries ---------------------------------------------------------------------------- */

/* True if the name leads nowhere else on any system: not absolute, without an empty part, "." or
 * "..", without backslash, colon and control characters. A folder's may end with a slash. */
static bool is_harmless(const char *name)
{
    for (const char *at = name; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7f || *at == '\\' || *at == ':') {
            return false;
        }
    }
    do {
        size_t bytes = strcspn(name, "/");

        if (bytes == 0 || (bytes <= 2 && strncmp(name, "..", bytes) == 0)) {
            return false;
        }
        name += bytes + (name[bytes] == '/');
    } while (*name != '\0');
    return true;
}

/* Returns what is wrong with an entry, or NULL. The upper half of the attributes is the file's
 * mode, whichever system made the archive. */
static const char *fault_of(const zip_stat_t *status, zip_uint32_t attributes)
{
    size_t bytes = strlen(status->name);
    unsigned type = attributes >> 16 & S_IFMT;

    if (!is_harmless(status->name)) {
        return "has a name that is absolute, has an empty part, \".\" or \"..\", or a backslash, a "
               "colon or a control character";
    }
    if (type != 0 && type != (status->name[bytes - 1] == '/' ? S_IFDIR : S_IFREG)) {
        return "is a link, or no file at all: put the file itself into the archive";
    }
    if (status->encryption_method != ZIP_EM_NONE) {
        return "is encrypted: make the archive without a password";
    }
    return status->comp_method != ZIP_CM_STORE && status->comp_method != ZIP_CM_DEFLATE
               ? "is compressed in a way that is not read: use deflate, as zip does"
               : NULL;
}

static int check_entries(zip_t *zip, struct baton_error *reterr)
{
    zip_int64_t count = zip_get_num_entries(zip, 0);

    if (count < 1 || count > ARCHIVE_ENTRIES_MAX) {
        return error_set(reterr, count < 1 ? BATON_EPROTO : BATON_ETOOBIG,
                         "archive: %lld entries; 1 to %d are allowed", (long long)count,
                         ARCHIVE_ENTRIES_MAX);
    }
    for (zip_uint64_t i = 0; i < (zip_uint64_t)count; i++) {
        zip_uint32_t attributes;
        zip_uint8_t system;
        zip_stat_t status;
        const char *fault;

        if (zip_stat_index(zip, i, ZIP_FL_ENC_RAW, &status) != 0 ||
            zip_file_get_external_attributes(zip, i, 0, &system, &attributes) != 0) {
            return error_set(reterr, BATON_EPROTO, "archive: entry %llu cannot be read",
                             (unsigned long long)i);
        }
        fault = fault_of(&status, attributes);
        if (fault != NULL) {
            return error_set(reterr, BATON_EPROTO, "archive: entry \"%.76s\" %s", status.name,
                             fault);
        }
    }
    return 0;
}

/* ---- Unpacking an entry ---------------------------------------------------------------------- */

/* A common mistake: the folder was zipped in place of its content. */
static int no_pipeline(zip_t *zip, struct baton_error *reterr)
{
    const char *name;

    for (zip_uint64_t i = 0; (name = zip_get_name(zip, i, ZIP_FL_ENC_RAW)) != NULL; i++) {
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

static int no_file(zip_t *zip, const char *wanted, struct baton_error *reterr)
{
    const char *names[ARCHIVE_ENTRIES_MAX + 1];
    char text[TEXT_NEAREST_BYTES];
    size_t count = 0;

    if (strcmp(wanted, PIPELINE_FILE) == 0) {
        return no_pipeline(zip, reterr);
    }
    while ((names[count] = zip_get_name(zip, count, ZIP_FL_ENC_RAW)) != NULL) {
        count++; /* no more than check_entries() lets pass */
    }
    return error_set(reterr, BATON_EPROTO, "\"%s\" is not in the archive%s", wanted,
                     text_nearest(text, wanted, names, count));
}

/* Counts what an entry says; it is found out below whether it lies. */
static int check_size(struct archive *archive, const zip_stat_t *status, uint64_t bytes_max,
                      struct baton_error *reterr)
{
    if (status->size < 1 || status->size > bytes_max) {
        return error_set(reterr, status->size < 1 ? BATON_EPROTO : BATON_ETOOBIG,
                         "archive: %s: a file of %llu bytes: must be 1 to %llu", status->name,
                         (unsigned long long)status->size, (unsigned long long)bytes_max);
    }
    if (status->size > archive->unpacked_max - archive->unpacked) {
        return error_set(reterr, BATON_ETOOBIG,
                         "archive: it unpacks to more than %llu bytes, which is the limit: at most "
                         "2 GiB, and above 16 MiB %d times its own size",
                         (unsigned long long)archive->unpacked_max, ARCHIVE_RATIO_MAX);
    }
    archive->unpacked += status->size;
    return 0;
}

/* At the end the library checks its checksum, but not the length of one that is deflated. */
static int read_all(zip_file_t *file, const zip_stat_t *status, char *ret,
                    struct baton_error *reterr)
{
    zip_uint64_t at = 0;
    zip_int64_t got = 1;
    char beyond;

    while (got > 0 && at <= status->size) {
        got = at < status->size ? zip_fread(file, ret + at, status->size - at)
                                : zip_fread(file, &beyond, 1);
        at += got > 0 ? (zip_uint64_t)got : 0;
    }
    if (got < 0) {
        return zip_failed(zip_file_get_error(file), status->name, reterr);
    }
    return at == status->size
               ? 0
               : error_set(reterr, BATON_EPROTO,
                           "archive: %s has another length than the archive says", status->name);
}

/* Not into the heap, which would keep it until the process ends. */
static int unpack(zip_t *zip, const zip_stat_t *status, void **ret, struct baton_error *reterr)
{
    zip_file_t *file = zip_fopen_index(zip, status->index, 0);
    void *memory = MAP_FAILED;
    int rc;

    if (file == NULL) {
        return zip_failed(zip_get_error(zip), status->name, reterr);
    }
    memory = mmap(NULL, status->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    rc = memory == MAP_FAILED
             ? error_set(reterr, BATON_ENOMEM, "archive: %s: out of memory for %llu bytes",
                         status->name, (unsigned long long)status->size)
             : read_all(file, status, memory, reterr);
    (void)zip_fclose(file); /* the read to its end has reported any error */
    if (rc == 0) {
        *ret = memory;
    } else if (memory != MAP_FAILED) {
        (void)munmap(memory, status->size);
    }
    return rc;
}

int archive_unpack(struct archive *archive, const char *name, uint64_t bytes_max, void **ret,
                   size_t *ret_bytes, struct baton_error *reterr)
{
    zip_stat_t status;
    int rc;

    if (zip_stat(archive->zip, name, ZIP_FL_ENC_RAW, &status) != 0) {
        return no_file(archive->zip, name, reterr);
    }
    rc = check_size(archive, &status, bytes_max, reterr);
    rc = rc ? rc : unpack(archive->zip, &status, ret, reterr);
    *ret_bytes = status.size;
    return rc;
}

/* ---- Opening -------------------------------------------------------------------------------- */

/* zip_fdopen() would duplicate the descriptor, which the fences forbid. */
static zip_t *open_zip(FILE *file, zip_error_t *error)
{
    zip_source_t *source = zip_source_filep_create(file, 0, -1, error); /* which owns the file */
    zip_t *zip = NULL;

    if (source == NULL) {
        (void)fclose(file);
    } else {
        zip = zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, error);
        if (zip == NULL) {
            zip_source_free(source);
        }
    }
    return zip;
}

int archive_open(struct archive *ret, FILE *file, uint64_t bytes_max, struct baton_error *reterr)
{
    struct stat status = {0};
    uint64_t most, bytes;
    zip_error_t error;
    zip_t *zip;
    int rc = 0;

    (void)fstat(fileno(file), &status);
    bytes = (uint64_t)status.st_size;
    if (bytes_max > 0 && bytes > bytes_max) {
        (void)fclose(file);
        return error_set(reterr, BATON_ETOOBIG, "archive: %llu bytes; at most %llu are allowed",
                         (unsigned long long)bytes, (unsigned long long)bytes_max);
    }
    zip_error_init(&error);
    zip = open_zip(file, &error);
    if (zip == NULL) {
        rc = zip_error_code_zip(&error) == ZIP_ER_EXISTS
                 ? error_set(reterr, BATON_EPROTO, "archive: a name is there twice")
                 : zip_failed(&error, "it cannot be opened", reterr);
    }
    zip_error_fini(&error);
    rc = rc ? rc : check_entries(zip, reterr);
    if (rc == 0) {
        most = bytes * ARCHIVE_RATIO_MAX;
        most = most < ARCHIVE_RATIO_FREE ? ARCHIVE_RATIO_FREE : most;
        *ret = (struct archive){zip, 0, most < unpacked_max ? most : unpacked_max};
    } else if (zip != NULL) {
        zip_discard(zip);
    }
    return rc;
}

/* Reads and checks the directory of an archive; nothing is unpacked here. */
#include "detector/model/archive_int.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    END_BYTES = 22, /* the record at an archive's end, without its comment */
    END_COMMENT_MAX = 65535,
    END64_BYTES = 20, /* zip64's, before it */
    DIRECTORY_BYTES_MAX = 4 << 20,
};

static unsigned two_at(const unsigned char *at)
{
    return at[0] | (unsigned)at[1] << 8;
}

static uint32_t four_at(const unsigned char *at)
{
    return two_at(at) | (uint32_t)two_at(at + 2) << 16;
}

/* The end record: signature, numbers of disks (2, 2), entries here and in all (2, 2), the
 * directory's size and place (4, 4), the comment's length (2) and the comment. */
static int check_record(const unsigned char *record, bool has_zip64, int entries_max,
                        struct baton_error *reterr)
{
    unsigned entries = two_at(record + 10);

    if (has_zip64 || two_at(record + 8) == 0xffff || entries == 0xffff ||
        four_at(record + 12) == UINT32_MAX || four_at(record + 16) == UINT32_MAX) {
        return error_set(reterr, BATON_EPROTO,
                         "archive: it is of the zip64 kind: make one of at most %d entries and "
                         "less than 4 GiB",
                         entries_max);
    }
    if (entries > (unsigned)entries_max) {
        return error_set(reterr, BATON_ETOOBIG, "archive: %u entries; at most %d are allowed",
                         entries, entries_max);
    }
    if (four_at(record + 12) > DIRECTORY_BYTES_MAX) {
        return error_set(reterr, BATON_ETOOBIG,
                         "archive: its directory takes %lu bytes; at most %d are allowed",
                         (unsigned long)four_at(record + 12), DIRECTORY_BYTES_MAX);
    }
    return 0;
}

/* A comment may hold bytes that look like an end record, and the library chooses one of them: all
 * must be valid. */
static int check_tail(const unsigned char *tail, size_t bytes, int entries_max,
                      struct baton_error *reterr)
{
    bool is_found = false;

    for (size_t at = 0; at + END_BYTES <= bytes; at++) {
        const unsigned char *record = tail + at;
        bool has_zip64 = at >= END64_BYTES && memcmp(record - END64_BYTES, "PK\6\7", 4) == 0;
        int rc;

        if (memcmp(record, "PK\5\6", 4) != 0 || two_at(record + 20) != bytes - at - END_BYTES) {
            continue;
        }
        is_found = true;
        rc = check_record(record, has_zip64, entries_max, reterr);
        if (rc != 0) {
            return rc;
        }
    }
    return is_found ? 0
                    : error_set(reterr, BATON_EPROTO,
                                "archive: not a zip file, or its end is missing; fetch or make it "
                                "again");
}

int archive_check_end(int fd, uint64_t bytes, int entries_max, struct baton_error *reterr)
{
    size_t want = END64_BYTES + END_BYTES + END_COMMENT_MAX, done = 0;
    unsigned char *tail;
    int rc;

    want = bytes < want ? (size_t)bytes : want;
    tail = malloc(want + 1);
    if (tail == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    while (done < want) {
        ssize_t got = pread(fd, tail + done, want - done, (off_t)(bytes - want + done));
        if (got <= 0) {
            break;
        }
        done += (size_t)got;
    }
    rc = done == want ? check_tail(tail, want, entries_max, reterr)
                      : error_set(reterr, BATON_EIO, "archive: it cannot be read");
    free(tail);
    return rc;
}

/* A name from outside, for a message: plain letters only. */
static const char *shown(const char *name, char ret[ENTRY_SHOWN_BYTES])
{
    size_t used = 0;

    while (used < ENTRY_SHOWN_BYTES - 4 && name[used] != '\0') {
        unsigned char c = (unsigned char)name[used];
        ret[used++] = (char)(c >= 0x20 && c < 0x7f ? c : '?');
    }
    (void)snprintf(ret + used, ENTRY_SHOWN_BYTES - used, "%s", name[used] != '\0' ? "..." : "");
    return ret;
}

static int refuse(const char *name, int code, const char *why, struct baton_error *reterr)
{
    char text[ENTRY_SHOWN_BYTES];

    return error_set(reterr, code, "archive: entry \"%s\" %s", shown(name, text), why);
}

/* The upper half of the attributes is the file's mode, whichever system made the archive. */
static int check_mode(const struct archive *archive, zip_uint64_t index, bool is_folder,
                      const char *name, struct baton_error *reterr)
{
    zip_uint8_t system;
    zip_uint32_t attributes;
    unsigned type;

    if (zip_file_get_external_attributes(archive->zip, index, 0, &system, &attributes) != 0) {
        return refuse(name, BATON_EPROTO, "has attributes that cannot be read", reterr);
    }
    type = attributes >> 16 & S_IFMT;
    if (type == S_IFLNK) {
        return refuse(name, BATON_EPROTO, "is a link: put the file itself into the archive",
                      reterr);
    }
    if (type != 0 && type != (is_folder ? S_IFDIR : S_IFREG)) {
        return refuse(name, BATON_EPROTO, "is neither a file nor a folder", reterr);
    }
    return 0;
}

static int check_stat(const struct archive *archive, const zip_stat_t *status, const char *name,
                      struct baton_error *reterr)
{
    const zip_uint64_t wanted =
        ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;

    if ((status->valid & wanted) != wanted) {
        return refuse(name, BATON_EPROTO, "lacks its size", reterr);
    }
    if (status->encryption_method != ZIP_EM_NONE) {
        return refuse(name, BATON_EPROTO, "is encrypted: make the archive without a password",
                      reterr);
    }
    if (status->comp_method != ZIP_CM_STORE && status->comp_method != ZIP_CM_DEFLATE) {
        return refuse(name, BATON_EPROTO,
                      "is compressed in a way that is not read: use deflate, as zip does", reterr);
    }
    if (status->comp_size > archive->archive_bytes) {
        return refuse(name, BATON_EPROTO, "claims to be larger than the archive", reterr);
    }
    if (status->size > archive->rules->unpacked_bytes_max) {
        return refuse(name, BATON_ETOOBIG, "is larger than all of an archive may be", reterr);
    }
    return 0;
}

static int list_one(struct archive *archive, zip_uint64_t index, struct baton_error *reterr)
{
    struct entry *entry = &archive->entries[archive->entry_count];
    const char *name = zip_get_name(archive->zip, index, ZIP_FL_ENC_RAW);
    size_t bytes = name != NULL ? strlen(name) : 0;
    zip_stat_t status;
    int rc;

    if (bytes == 0 || zip_stat_index(archive->zip, index, 0, &status) != 0) {
        return error_set(reterr, BATON_EPROTO, "archive: entry %llu has no name",
                         (unsigned long long)index);
    }
    entry->is_folder = name[bytes - 1] == '/';
    rc = check_stat(archive, &status, name, reterr);
    rc = rc ? rc : check_mode(archive, index, entry->is_folder, name, reterr);
    if (rc != 0) {
        return rc;
    }
    if (bytes - entry->is_folder > NAME_BYTES_MAX) {
        return refuse(name, BATON_EPROTO, "has a name that is too long", reterr);
    }
    (void)snprintf(entry->name, sizeof(entry->name), "%.*s", (int)(bytes - entry->is_folder), name);
    rc = name_check(entry->name, reterr);
    if (rc != 0 && name_is_harmless(entry->name)) {
        return 0; /* pipeline.json cannot name such a file, so it is not unpacked */
    }
    if (rc != 0) {
        char text[ENTRY_SHOWN_BYTES];
        (void)error_wrap(reterr, "archive: entry \"%s\"", shown(name, text));
        return rc;
    }
    entry->bytes = status.size;
    entry->index = index;
    archive->entry_count++;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcasecmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

/* True if `name` lies below an entry that is a file, as "a/b" below "a". */
static bool is_below_file(const struct archive *archive, const char *name)
{
    char folder[NAME_BYTES_MAX + 1];

    for (const char *slash = strchr(name, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        (void)snprintf(folder, sizeof(folder), "%.*s", (int)(slash - name), name);
        for (size_t i = 0; i < archive->entry_count; i++) {
            if (!archive->entries[i].is_folder &&
                strcasecmp(archive->entries[i].name, folder) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* Readers of zip files differ in which of two equal names they take, so both are refused. */
static int check_unique(const struct archive *archive, struct baton_error *reterr)
{
    for (size_t i = 0; i < archive->entry_count; i++) {
        const char *name = archive->entries[i].name;

        if (i > 0 && strcasecmp(archive->entries[i - 1].name, name) == 0) {
            return refuse(name, BATON_EPROTO,
                          "is there twice, or differs from another only in case", reterr);
        }
        if (is_below_file(archive, name)) {
            return refuse(name, BATON_EPROTO, "lies in a folder that is a file as well", reterr);
        }
    }
    return 0;
}

int archive_list(struct archive *archive, struct baton_error *reterr)
{
    zip_int64_t count = zip_get_num_entries(archive->zip, 0);
    int rc = 0;

    if (count < 1 || count > archive->rules->entries_max) {
        return error_set(reterr, count < 1 ? BATON_EPROTO : BATON_ETOOBIG,
                         "archive: %lld entries; 1 to %d are allowed", (long long)count,
                         archive->rules->entries_max);
    }
    archive->entries = calloc((size_t)count, sizeof(*archive->entries));
    if (archive->entries == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    for (zip_int64_t i = 0; rc == 0 && i < count; i++) {
        rc = list_one(archive, (zip_uint64_t)i, reterr);
    }
    if (rc != 0) {
        return rc;
    }
    qsort(archive->entries, archive->entry_count, sizeof(*archive->entries), by_name);
    return check_unique(archive, reterr);
}

const struct entry *archive_find(const struct archive *archive, const char *name)
{
    for (size_t i = 0; i < archive->entry_count; i++) {
        if (!archive->entries[i].is_folder && strcmp(archive->entries[i].name, name) == 0) {
            return &archive->entries[i];
        }
    }
    return NULL;
}

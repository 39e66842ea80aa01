/* The parts of archive_scan(), which reads an archive and writes nothing. */
#ifndef DETECTOR_MODEL_ARCHIVE_INT_H
#define DETECTOR_MODEL_ARCHIVE_INT_H

#include "detector/model/archive.h"
#include "detector/model/archive_draft.h"

#include <stdio.h>
#include <zip.h>

enum { ENTRY_SHOWN_BYTES = 80 };

struct entry {
    char name[NAME_BYTES_MAX + 1]; /* without a folder's slash */
    uint64_t bytes;                /* unpacked, as the archive says */
    zip_uint64_t index;
    bool is_folder;
};

struct archive {
    const struct archive_rules *rules;
    uint64_t archive_bytes;
    zip_t *zip;
    struct entry *entries;
    size_t entry_count;
    uint64_t unpacked_bytes; /* so far */
};

/* Checks the archive's end before the library does, which would allocate the number of entries in
 * it. */
int archive_check_end(int fd, uint64_t bytes, int entries_max, struct baton_error *reterr);

/* Reads and checks the list of entries. */
int archive_list(struct archive *archive, struct baton_error *reterr);

/* Finds a file by its name; NULL: there is none. */
const struct entry *archive_find(const struct archive *archive, const char *name);

/* Reads the entry's bytes in order. A code from `take` ends it. */
typedef int (*archive_take)(void *userdata, const void *bytes, size_t count,
                            struct baton_error *reterr);
int archive_read(struct archive *archive, const struct entry *entry, archive_take take,
                 void *userdata, struct baton_error *reterr);

/* The receiver of an archive's content: pipeline.json first, then each file that it names. */
struct archive_sink {
    int (*begin)(void *userdata, const char *name, uint64_t bytes, struct baton_error *reterr);
    archive_take take;
    void *userdata;
};

/* Reads the archive. Returns the codes of archive_unpack(), and the sink's. */
int archive_scan(FILE *file, const struct archive_rules *rules, const struct archive_sink *sink,
                 struct baton_error *reterr);

int archive_zip_error(zip_error_t *error, const char *what, struct baton_error *reterr);

#endif

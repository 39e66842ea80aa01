/* Reads an archive and writes nothing; baton-unpack runs this. */
#ifndef DETECTOR_MODEL_ARCHIVE_SCAN_H
#define DETECTOR_MODEL_ARCHIVE_SCAN_H

#include "detector/model/archive_int.h"

#include <stdio.h>
#include <zip.h>

struct archive {
    const struct archive_rules *rules;
    uint64_t archive_bytes, unpacked_bytes; /* unpacked so far */
    zip_t *zip;
};

/* Opens the archive, closes the file with it, and checks all entries. Returns the codes of
 * archive_unpack(). */
int archive_open(struct archive *ret, FILE *file, const struct archive_rules *rules,
                 struct baton_error *reterr);
void archive_close(struct archive *archive);

/* Reads one file; `userdata` is the archive. BATON_ENOENT: it is not there. */
int archive_file(void *userdata, const char *name, const struct archive_sink *sink,
                 struct baton_error *reterr);

#endif

/* Reads an archive and writes nothing; baton-unpack runs this. */
#ifndef DETECTOR_MODEL_ARCHIVE_SCAN_H
#define DETECTOR_MODEL_ARCHIVE_SCAN_H

#include <baton/error.h>

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <zip.h>

/* Opens the archive, closes the file with it, and checks all entries. Returns the codes of
 * archive_unpack(). zip_discard() follows. */
int archive_open(zip_t **ret, FILE *file, struct baton_error *reterr);

struct archive_file {
    zip_file_t *file;
    const char *name; /* borrowed */
    uint64_t left;    /* bytes, as the archive says */
};

/* Begins to read a file. BATON_ENOENT: it is not there. zip_fclose(ret->file) follows. */
int archive_file(struct archive_file *ret, zip_t *zip, const char *name,
                 struct baton_error *reterr);

/* Reads on. Returns the number of bytes, 0 at the end of a file that is whole, or a code. */
ssize_t archive_read(struct archive_file *from, void *bytes, size_t count,
                     struct baton_error *reterr);

#endif

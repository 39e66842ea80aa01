/* Reads an archive and writes nothing; baton-unpack runs this. */
#ifndef DETECTOR_MODEL_ARCHIVE_SCAN_H
#define DETECTOR_MODEL_ARCHIVE_SCAN_H

#include <baton/error.h>

#include <stddef.h>
#include <stdio.h>
#include <zip.h>

/* Opens the archive, closes the file with it, and checks all entries. Returns the codes of
 * archive_unpack(). zip_discard() follows. */
int archive_open(zip_t **ret, FILE *file, struct baton_error *reterr);

/* Takes the bytes of a file, UNPACK_DATA_MAX or fewer at a time. */
typedef int archive_sink(void *userdata, const void *bytes, size_t count,
                         struct baton_error *reterr);

/* Reads one file. BATON_ENOENT: it is not there. */
int archive_file(zip_t *zip, const char *name, archive_sink *sink, void *userdata,
                 struct baton_error *reterr);

#endif

/* Zip files by hand, so that they can be wrong in every way. */
#ifndef TESTS_UNIT_DETECTOR_MODEL_ZIP_MAKER_H
#define TESTS_UNIT_DETECTOR_MODEL_ZIP_MAKER_H

#include "base/buffer.h"

enum { ZIP_MAKER_ENTRIES_MAX = 2000 };

/* A file of the archive; zeroes are right. */
struct zip_part {
    const char *name;
    const char *text; /* its bytes; NULL: none */
    size_t bytes;     /* of them; 0: up to a NUL */
    unsigned mode;    /* of a UNIX file: S_IFLNK | 0777; 0: 0644 */
    unsigned method;
    unsigned flags;
    uint32_t wrong_crc;    /* xor */
    uint32_t extra_bytes;  /* that it claims to have in addition */
    uint32_t packed_bytes; /* in place of how many it has; 0: as many */
};

struct zip_lies {
    unsigned entries; /* in place of how many there are; 0: as many */
    uint32_t directory_bytes;
    const char *comment;
    int has_zip64;
};

/* Appends the archive to `ret`. */
void zip_make(struct buffer *ret, const struct zip_part *parts, size_t count,
              const struct zip_lies *lies);

/* The descriptor of a file without a name that holds these bytes. */
int zip_file_of(const void *bytes, size_t count);
/* The same of one that promises so many entries, whose directory is a hole. */
int zip_promise(uint64_t entries);

#endif

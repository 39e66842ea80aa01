/* The limits of a model archive (archive.h). */
#ifndef DETECTOR_MODEL_ARCHIVE_RULES_H
#define DETECTOR_MODEL_ARCHIVE_RULES_H

#include <stdatomic.h>
#include <stdint.h>

struct archive_rules {
    uint64_t archive_bytes_max;
    uint64_t unpacked_bytes_max;
    int entries_max;
    const atomic_bool *is_canceled; /* borrowed; NULL: it cannot be */
    const char *program;            /* path of baton-unpack; NULL: found beside this program */
};

enum {
    ARCHIVE_ENTRIES_MAX = 1024,    /* of the default rules, and the most they may allow */
    ARCHIVE_RATIO_MAX = 100,       /* unpacked bytes for each byte of the archive, … */
    ARCHIVE_RATIO_FREE = 16 << 20, /* … above this many */
};

#endif

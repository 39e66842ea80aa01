/* What archive_unpack() does, with the child's part in this process: for those who unpack thousands
 * of archives. */
#ifndef UNIT_DETECTOR_MODEL_UNPACK_HERE_H
#define UNIT_DETECTOR_MODEL_UNPACK_HERE_H

#include "detector/model/archive_scan.h"

#include <assert.h>
#include <unistd.h>

/* FD stays the caller's. */
static inline int unpack_here(int fd, int parent_fd, const char *name,
                              const struct archive_rules *rules, struct baton_error *error)
{
    struct archive archive;
    const struct archive_source source = {archive_file, &archive};
    FILE *file = fdopen(dup(fd), "r");
    int rc;

    assert(file != NULL);
    rc = archive_open(&archive, file, rules, error);
    if (rc == 0) {
        rc = archive_write(&source, parent_fd, name, rules, error);
        archive_close(&archive);
    }
    return rc;
}

#endif

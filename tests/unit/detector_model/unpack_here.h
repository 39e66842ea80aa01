/* What archive_unpack() does, with the child's part in this process: for those who unpack thousands
 * of archives. */
#ifndef UNIT_DETECTOR_MODEL_UNPACK_HERE_H
#define UNIT_DETECTOR_MODEL_UNPACK_HERE_H

#include "detector/model/archive_int.h"
#include "detector/model/archive_scan.h"

#include <assert.h>
#include <stdio.h>
#include <unistd.h>

/* FD stays the caller's. */
static inline int unpack_here(int fd, int parent_fd, const char *name,
                              const struct archive_rules *rules, struct baton_error *error)
{
    struct archive_draft to;
    const struct archive_sink sink = {archive_draft_begin, archive_draft_take, &to};
    FILE *file = fdopen(dup(fd), "r");
    int rc = archive_draft_open(&to, parent_fd, rules, error);

    assert(file != NULL && rc == 0);
    rc = archive_scan(file, rules, &sink, error);
    rc = rc ? rc : archive_draft_end(&to, name, error);
    archive_draft_close(&to);
    return rc;
}

#endif

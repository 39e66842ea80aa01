/* A folder that an archive's files are written to, as they come out of it. */
#ifndef DETECTOR_MODEL_ARCHIVE_DRAFT_H
#define DETECTOR_MODEL_ARCHIVE_DRAFT_H

#include "base/buffer.h"
#include "detector/model/archive_rules.h"
#include "detector/model/folder.h"
#include "detector/model/name.h"
#include "detector/model/sums.h"
#include "detector/model/unpack_wire.h"

#include <stdbool.h>

struct archive_draft {
    const struct archive_rules *rules; /* borrowed */
    struct draft draft;
    int fd;                        /* of the file that is written; -1: none */
    uint64_t left, total;          /* bytes: of that file, still; of all, announced */
    char name[NAME_BYTES_MAX + 1]; /* of that file */
    struct digest digest;          /* of what it has by now */
    struct buffer sums;            /* of those that are whole */
    struct buffer text;            /* of pipeline.json */
    struct pipeline pipeline;
    bool has_pipeline;
    bool is_there[PIPELINE_MODELS_MAX]; /* the file of that model has come */
};

/* To be closed, also after a failure of what follows. */
int archive_draft_open(struct archive_draft *to, int parent_fd, const struct archive_rules *rules,
                       struct baton_error *reterr);
/* The next file, and its bytes. BATON_EPROTO: pipeline.json must be the first, then each file that
 * it names, once and whole. */
int archive_draft_begin(void *userdata, const char *name, uint64_t bytes,
                        struct baton_error *reterr);
int archive_draft_take(void *userdata, const void *bytes, size_t count, struct baton_error *reterr);
/* All is there: it gets its name. BATON_EEXIST: that is taken. */
int archive_draft_end(struct archive_draft *to, const char *name, struct baton_error *reterr);
void archive_draft_close(struct archive_draft *to); /* removes what did not get its name */

/* A message of baton-unpack, of so many bytes. `is_done`: set by the last. */
int archive_accept(struct archive_draft *to, const struct unpack_message *message, size_t bytes,
                   bool *is_done, struct baton_error *reterr);

#endif

/* A folder to which an archive's files are written as they are unpacked: pipeline.json, each file
 * that it names, and SUM_FILE, the digest of all of them, to find what the disk has damaged. */
#ifndef DETECTOR_MODEL_ARCHIVE_INT_H
#define DETECTOR_MODEL_ARCHIVE_INT_H

#include "base/buffer.h"
#include "detector/model/archive.h"
#include "detector/model/digest.h"
#include "detector/model/folder.h"
#include "detector/model/unpack_wire.h"

/* An archive cannot have this name: see name.h. */
#define SUM_FILE ".sum"

struct archive_draft {
    const struct archive_rules *rules; /* borrowed */
    struct draft draft;
    int fd;               /* of the file that is being written; -1: none */
    uint64_t left, total; /* bytes still missing of that file; bytes announced of all */
    struct digest digest; /* of all bytes so far */
    struct buffer text;   /* of pipeline.json */
    struct pipeline pipeline;
    bool has_pipeline;
    size_t next; /* the model whose file comes next */
};

/* The caller closes it, also after a failure of the calls below. */
int archive_draft_open(struct archive_draft *to, int parent_fd, const struct archive_rules *rules,
                       struct baton_error *reterr);
/* Begin the next file, and write its bytes. BATON_EPROTO: pipeline.json must be the first, then
 * each file that it names, in order, once and whole. */
int archive_draft_begin(void *userdata, const char *name, uint64_t bytes,
                        struct baton_error *reterr);
int archive_draft_take(void *userdata, const void *bytes, size_t count, struct baton_error *reterr);
/* Gives the complete folder its name. Returns BATON_EEXIST if the name is taken. */
int archive_draft_end(struct archive_draft *to, const char *name, struct baton_error *reterr);
void archive_draft_close(struct archive_draft *to); /* removes a folder without its name */

/* Takes a message of baton-unpack, of so many bytes. The last one sets `is_done`. */
int archive_accept(struct archive_draft *to, const struct unpack_message *message, size_t bytes,
                   bool *is_done, struct baton_error *reterr);

#endif

/* Model archives: of a zip file from outside come pipeline.json and a file for each of its models.
 *
 * The archive is refused, with what is wrong and where, and nothing is left behind, if
 *   - it is larger than the rules allow, has more entries, or unpacks to more, or to 100 times its
 *     own size; what comes out counts, not what it says;
 *   - an entry has a password or a compression other than deflate, is no plain file or folder, or
 *     has a name that leads elsewhere on some system or is there twice;
 *   - a checksum or a length is wrong, or its parts contradict each other;
 *   - pipeline.json is not there or wrong, or names a file that is not there.
 * Entries that pipeline.json does not name are never unpacked.
 *
 * The archive is read by a child, baton-unpack, which can open and make nothing; what it hands over
 * is checked once more and written here (unpack_wire.h). A hostile archive costs a child. The files
 * have no names: they end with the process, however it ends, and no name of an archive becomes one
 * of this machine.
 *
 * Every call may block on the disk and none belongs on the loop's thread.
 */
#ifndef DETECTOR_MODEL_ARCHIVE_H
#define DETECTOR_MODEL_ARCHIVE_H

#include "detector/helper/helper.h"
#include "detector/model/pipeline.h"

#include <stdatomic.h>
#include <sys/types.h>

enum {
    ARCHIVE_ENTRIES_MAX = 1024,
    ARCHIVE_RATIO_MAX = 100,       /* unpacked bytes for each byte of the archive, … */
    ARCHIVE_RATIO_FREE = 16 << 20, /* … above this many */
};

struct archive_rules {
    uint64_t archive_bytes_max;
    uint64_t unpacked_bytes_max;
    const atomic_bool *is_canceled; /* borrowed; NULL: it cannot be */
    const char *program;            /* path of baton-unpack; NULL: found beside this program */
};

/* The defaults: 1 GiB, 2 GiB, NULL, NULL. */
struct archive_rules archive_rules_default(void);

/* What came out of an archive. */
struct unpacked {
    struct pipeline pipeline;
    int files[PIPELINE_MODELS_MAX]; /* of each model, only to be read; -1: there is none */
    uint64_t bytes;                 /* of all of it */
};

void unpacked_fini(struct unpacked *unpacked);

/* Unpacks the archive of `archive_fd` (borrowed) into nameless files of the folder `folder_fd`.
 * 0, or
 * BATON_EPROTO    not such an archive, or torn
 * BATON_ETOOBIG   above a limit
 * BATON_EUNAVAILABLE  baton-unpack cannot be started, or not be confined
 * BATON_EFULL, BATON_EIO, BATON_ENOMEM, BATON_ECANCELED */
int archive_unpack(struct unpacked *ret, int archive_fd, int folder_fd,
                   const struct archive_rules *rules, struct baton_error *reterr);

/* Makes a file without a name. Returns the descriptor, or a code. A process that is killed within
 * the call leaves ARCHIVE_NEW_FILE, which everybody may remove. */
#define ARCHIVE_NEW_FILE ".file"
int archive_new_file(int folder_fd, struct baton_error *reterr);

/* ---- The parts of archive_unpack(), for tests ---- */

/* The process baton-unpack. The thread that starts it must end it. */
int unpack_child_start(struct helper *ret, int archive_fd, const struct archive_rules *rules,
                       struct baton_error *reterr);
void unpack_child_end(struct helper *child); /* kills it if it still runs */

/* Writes what the child gives. */
int archive_write(struct unpacked *ret, struct helper *child, uint64_t archive_bytes, int folder_fd,
                  const struct archive_rules *rules, struct baton_error *reterr);

#endif

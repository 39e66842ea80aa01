/* Model archives: a zip file from outside becomes a folder that holds what pipeline.json names.
 *
 * The archive is refused, with what is wrong and where, and nothing is left behind, if
 *   - it is larger than the rules allow, has more entries, or unpacks to more, or to 100 times its
 *     own size; what comes out counts, not what it says;
 *   - an entry has a password or a compression other than deflate, is no plain file or folder, or
 *     has a name that leads elsewhere on some system (name.h) or is there twice;
 *   - a checksum or a length is wrong, or its parts contradict each other;
 *   - pipeline.json is not there or wrong, or names a file that is not there.
 * Entries that pipeline.json does not name are never unpacked.
 *
 * The archive is read by a child, baton-unpack, which can open and make nothing; what it hands over
 * is checked once more and written here (unpack_wire.h). A hostile archive costs a child.
 *
 * Every call may block on the disk and none belongs on the loop's thread.
 */
#ifndef DETECTOR_MODEL_ARCHIVE_H
#define DETECTOR_MODEL_ARCHIVE_H

#include "base/buffer.h"
#include "detector/helper/helper.h"
#include "detector/model/pipeline.h"

#include <stdatomic.h>
#include <sys/types.h>

/* The digest of the digests of a folder's files, to find what the disk has damaged. No file of an
 * archive can have this name: see name.h. */
#define SUM_FILE ".sum"

enum {
    ARCHIVE_ENTRIES_MAX = 1024,
    ARCHIVE_RATIO_MAX = 100,       /* unpacked bytes for each byte of the archive, … */
    ARCHIVE_RATIO_FREE = 16 << 20, /* … above this many */
    ARCHIVE_TEXT_MAX = PIPELINE_BYTES_MAX + (64 << 10),
};

struct archive_rules {
    uint64_t archive_bytes_max;
    uint64_t unpacked_bytes_max;
    const atomic_bool *is_canceled; /* borrowed; NULL: it cannot be */
    const char *program;            /* path of baton-unpack; NULL: found beside this program */
};

/* The defaults: 1 GiB, 2 GiB, NULL, NULL. */
struct archive_rules archive_rules_default(void);

/* Unpacks the archive that `archive_fd` (borrowed) reads, as folder `name` of the folder
 * `parent_fd`, in which nobody else may unpack meanwhile. 0, or
 * BATON_EPROTO    not such an archive, or torn
 * BATON_ETOOBIG   above a limit
 * BATON_EEXIST    the folder is there already
 * BATON_EINVAL    it is no file
 * BATON_EUNAVAILABLE  baton-unpack cannot be started, or not be confined
 * BATON_EFULL, BATON_EIO, BATON_ENOMEM, BATON_ECANCELED */
int archive_unpack(int archive_fd, int parent_fd, const char *name,
                   const struct archive_rules *rules, struct baton_error *reterr);

/* Appends pipeline.json of a folder that was unpacked to `ret`, which has room for ARCHIVE_TEXT_MAX
 * bytes. */
int archive_text(struct buffer *ret, int parent_fd, const char *name, struct baton_error *reterr);

/* Reads all of such a folder. Returns BATON_ECORRUPT if it is not what was unpacked (the disk may
 * have damaged it), or BATON_ENOMEM. */
int archive_check(int folder_fd, const struct pipeline *pipeline);

/* ---- The parts of archive_unpack(), for tests ---- */

/* The process baton-unpack. The thread that starts it must end it. */
int unpack_child_start(struct helper *ret, int archive_fd, const struct archive_rules *rules,
                       struct baton_error *reterr);
void unpack_child_end(struct helper *child); /* kills it if it still runs */

/* Receives the child's next message: its bytes, or a code. BATON_ECANCELED: see `rules`. */
struct unpack_message;
ssize_t unpack_child_receive(struct helper *child, const struct archive_rules *rules,
                             struct unpack_message *ret, struct baton_error *reterr);

/* Writes what the child gives. */
int archive_write(struct helper *child, uint64_t archive_bytes, int parent_fd, const char *name,
                  const struct archive_rules *rules, struct baton_error *reterr);

#endif

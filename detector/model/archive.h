/* Model archives: zip files from outside, with pipeline.json and the models that it names. Only
 * baton-model, which can be lost, reads one.
 *
 * An archive is refused, with what is wrong and where, if
 *   - it is larger than is allowed, has more entries, or unpacks to more, or to 100 times its own
 *     size; an entry whose bytes are more or fewer than it says is wrong;
 *   - an entry has a password or a compression other than deflate, is no plain file or folder, or
 *     has a name that leads elsewhere on some system or is there twice;
 *   - a checksum is wrong, or its parts contradict each other;
 *   - a file that is asked for is not there.
 * Entries that nobody asks for are never unpacked, and no entry becomes a file of this machine.
 */
#ifndef DETECTOR_MODEL_ARCHIVE_H
#define DETECTOR_MODEL_ARCHIVE_H

#include <baton/error.h>

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <zip.h>

enum {
    ARCHIVE_ENTRIES_MAX = 1024,
    ARCHIVE_RATIO_MAX = 100,       /* unpacked bytes for each byte of the archive, … */
    ARCHIVE_RATIO_FREE = 16 << 20, /* … above this many */
};

struct archive {
    zip_t *zip;
    uint64_t unpacked, unpacked_max; /* bytes that came out of it; that may: 2 GiB at most */
};

/* Opens the archive, takes the file, and checks all entries. `bytes_max`: 0: any size. 0, or
 * BATON_EPROTO    not such an archive, or torn
 * BATON_ETOOBIG   above a limit
 * BATON_EIO, BATON_ENOMEM
 * After a success zip_discard() follows. */
int archive_open(struct archive *ret, FILE *file, uint64_t bytes_max, struct baton_error *reterr);

/* Unpacks a file of 1 to `bytes_max` bytes into memory of its own, for munmap(). Returns the codes
 * of archive_open(). */
int archive_unpack(struct archive *archive, const char *name, uint64_t bytes_max, void **ret,
                   size_t *ret_bytes, struct baton_error *reterr);

#endif

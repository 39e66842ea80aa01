/* Models on the disk: archives as they were fetched, by the SHA-256 digest of their bytes.
 *
 *   FOLDER/archives/<digest>    an archive; its time is that of its last use
 *   FOLDER/origins/<key>        the digest and the ETag of the last model of an address that ran
 *
 * A model that is held is unpacked, into files without names (archive.h), which its holder reads.
 * So the name of an archive says whether the disk has damaged it, and no process leaves a part of
 * one behind: an archive is there whole or not at all, by one rename, and what has no name ends
 * with its process. Several processes may share a folder, and each may be killed at any moment.
 *
 * When the archives and the files of held models take more than the bound, the archive with the
 * oldest use is removed first; the archive of a model that is held is locked (shared), in use and
 * stays. One process at a time adds or removes, under the folder's lock. Locks are the kernel's, so
 * they end with their process.
 *
 * Every call but the last two may block on the disk: none belongs on the loop's thread. Several
 * threads may use a store at once.
 */
#ifndef DETECTOR_MODEL_STORE_H
#define DETECTOR_MODEL_STORE_H

#include "detector/model/archive.h"
#include "detector/model/digest.h"

enum { ETAG_BYTES = 257 }; /* with its NUL */

struct store; /* opaque */

/* Makes the folder, and those above it, if they are missing. `bytes_max` is for all archives, and
 * what this process has unpacked of them. */
int store_open(struct store **ret, const char *folder, uint64_t bytes_max,
               struct baton_error *reterr);
/* Sets another bound, which counts from the next added model on. Any thread. */
void store_set_max(struct store *store, uint64_t bytes_max);
void store_close(struct store *store); /* NULL is allowed; no model is held any more */

/* Makes a file without a name in the store's folder, for an archive to be fetched. Returns the
 * descriptor, or a code. */
int store_file(const struct store *store, struct baton_error *reterr);

/* A model that is held. */
struct model {
    struct store *store;
    char digest[DIGEST_BYTES];
    struct unpacked unpacked;
    int lock_fd;       /* of its archive */
    atomic_int shares; /* the first holder, and each model_share() */
};

/* Unpacks the archive and keeps it. `archive_fd` is borrowed. Returns the codes of
 * archive_unpack(); BATON_EFULL also if held models leave no room. */
int store_add(struct store *store, int archive_fd, const struct archive_rules *rules,
              struct model **ret, struct baton_error *reterr);

/* Unpacks an archive that was kept. Returns the codes of archive_unpack(), BATON_ENOENT if it is
 * missing, or BATON_ECORRUPT if it is not what was kept; then it is removed. */
int store_find(struct store *store, const char *digest, const struct archive_rules *rules,
               struct model **ret, struct baton_error *reterr);

/* The record of an address. The key is a digest: see digest_of(). */
struct origin {
    char digest[DIGEST_BYTES];
    char etag[ETAG_BYTES]; /* "" if there was none */
};

/* BATON_ENOENT: nothing is known of it. */
int store_origin(const struct store *store, const char *key, struct origin *ret);
int store_origin_set(struct store *store, const char *key, const char *digest, const char *etag);

struct model *model_share(struct model *model); /* must be released once more */
void model_release(struct model *model);        /* NULL allowed */

#endif

/* Models on the disk: archives as they were fetched, by the SHA-256 digest of their bytes.
 *
 *   FOLDER/archives/<digest>    an archive; its time is that of its last use
 *   FOLDER/origins/<key>        the digest and the ETag of the last model of an address that ran
 *
 * Whether it is one is not known here (archive.h). Its name says whether the disk has damaged it,
 * and it is there whole or not at all, by one rename. What is being fetched has no name, so no
 * process leaves a part of one behind. Several processes may share a folder, and each may be killed
 * at any moment.
 *
 * When the archives take more than the bound, the one with the oldest use is removed first; the
 * archive of a model that is held is locked (shared), in use and stays. One process at a time adds
 * or removes, under the folder's lock. Locks are the kernel's, so they end with their process.
 *
 * Every call but the last three may block on the disk: none belongs on the loop's thread. Of these
 * a release removes one file at most. Several threads may use a store at once.
 */
#ifndef DETECTOR_MODEL_STORE_H
#define DETECTOR_MODEL_STORE_H

#include "detector/model/digest.h"

#include <baton/error.h>

#include <stdatomic.h>
#include <stdint.h>

enum { ETAG_BYTES = 257 }; /* with its NUL */

struct store; /* opaque */

/* Makes the folder, and those above it, if they are missing. `bytes_max` is for all archives. */
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
    const struct store *store;
    char digest[DIGEST_BYTES];
    int fd;              /* the archive, read-only and locked */
    atomic_int shares;   /* the first holder, and each model_share() */
    atomic_bool is_none; /* no archive, see model_forget() */
};

/* Keeps the archive. `archive_fd` is borrowed; `is_canceled` ends the wait for others (NULL:
 * never). Returns BATON_EFULL if held models leave no room, or the disk is full, BATON_EIO,
 * BATON_ENOMEM or BATON_ECANCELED. */
int store_add(struct store *store, int archive_fd, const atomic_bool *is_canceled,
              struct model **ret, struct baton_error *reterr);

/* Finds an archive that was kept. Returns BATON_ENOENT if it is missing, or BATON_ECORRUPT if it is
 * not what was kept; then it is removed. */
int store_find(struct store *store, const char *digest, struct model **ret,
               struct baton_error *reterr);

/* The record of an address. The key is a digest: see digest_of(). */
struct origin {
    char digest[DIGEST_BYTES];
    char etag[ETAG_BYTES]; /* "" if there was none */
};

/* BATON_ENOENT: nothing is known of it. */
int store_origin(const struct store *store, const char *key, struct origin *ret);
int store_origin_set(struct store *store, const char *key, const char *digest, const char *etag);

/* It is no archive: its last release removes it, and until then it takes its room. Returns whether
 * that is news. */
bool model_forget(struct model *model);
struct model *model_share(struct model *model); /* must be released once more */
void model_release(struct model *model);        /* NULL allowed */

#endif

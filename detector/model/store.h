/* Models on the disk: unpacked archives, by the SHA-256 digest of their bytes.
 *
 *   FOLDER/models/<digest>/     a model, with its sum; its time is that of its last use
 *   FOLDER/models/.draft/       one that is being unpacked, or removed
 *   FOLDER/origins/<key>        the digest and the ETag of the last model of an address that ran
 *
 * Several processes may share a folder, and each may be killed at any moment: a model is there
 * whole or not at all, and the next process that opens the folder removes the draft of an ended
 * one. One process at a time adds, under the folder's lock. When the models take more than the
 * bound, the one with the oldest use is removed first; a model that is held is locked (shared), in
 * use and stays. Locks are the kernel's, so they end with their process.
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

/* Makes the folder, and those above it, if they are missing. `bytes_max` is for all models,
 * unpacked. */
int store_open(struct store **ret, const char *folder, uint64_t bytes_max,
               struct baton_error *reterr);
/* Sets another bound, which counts from the next added model on. Any thread. */
void store_set_max(struct store *store, uint64_t bytes_max);
void store_close(struct store *store); /* NULL is allowed; held models stay held */

/* Results of store_add() so far. */
struct store_counters {
    uint64_t unpacked, known; /* `known`: the digest was there already */
};

void store_counters(const struct store *store, struct store_counters *ret);

/* Makes a file without a name in the store's folder, for an archive to be fetched. Returns the
 * descriptor, or a code. */
int store_file(const struct store *store, struct baton_error *reterr);

/* A model that is held. */
struct model {
    char digest[DIGEST_BYTES];
    char *path;         /* of its folder */
    struct buffer text; /* its pipeline.json, as it was checked */
    int fd;             /* its lock */
    atomic_int shares;  /* the first holder, and each model_share() */
};

/* Unpacks the archive unless that was done before. `archive_fd` is borrowed. Returns the codes of
 * archive_unpack(); BATON_EFULL also if held models leave no room. */
int store_add(struct store *store, int archive_fd, const struct archive_rules *rules,
              struct model **ret, struct baton_error *reterr);

/* Reads all of the model. Returns BATON_ENOENT if it is missing, or BATON_ECORRUPT if it differs
 * from what was unpacked (SUM_FILE in archive.h); the next store_add() unpacks it again. */
int store_find(struct store *store, const char *digest, struct model **ret,
               struct baton_error *reterr);

/* The record of an address. The key is a digest: see digest_of(). */
struct origin {
    char digest[DIGEST_BYTES];
    char etag[ETAG_BYTES]; /* "" if there was none */
};

int store_origin(const struct store *store, const char *key, struct origin *ret,
                 struct baton_error *reterr); /* BATON_ENOENT: nothing is known of it */
int store_origin_set(struct store *store, const char *key, const struct origin *origin,
                     struct baton_error *reterr);

/* Reads the model's pipeline; pipeline_fini() follows. */
int model_pipeline(struct pipeline *ret, const struct model *model, struct baton_error *reterr);

struct model *model_share(struct model *model); /* must be released once more */
void model_release(struct model *model);        /* NULL allowed */

#endif

/* Models on the disk: archives that were unpacked, by the SHA-256 digest of their bytes.
 *
 *   FOLDER/models/<digest>/     a model, with sums.h; its time is that of its last use
 *   FOLDER/models/.draft-…/     one that is being unpacked, or removed
 *   FOLDER/origins/<key>        the digest and the ETag that an address had when it was last
 *                               fetched, and the digest before that, in case it cannot be run
 *
 * Several processes may share a folder, and each may be killed at any moment: a model is there
 * whole or not at all, and whoever opens the folder next removes what the dead left. What is used
 * longest ago goes first when the models take more than the bound; one that is held is locked
 * (shared), in use and stays. Locks are the kernel's, so they end with their process.
 *
 * Every call but the last two may block on the disk: none belongs on the loop's thread. A store may
 * be used by several threads at once.
 */
#ifndef DETECTOR_MODEL_STORE_H
#define DETECTOR_MODEL_STORE_H

#include "detector/model/archive.h"
#include "detector/model/digest.h"

enum { ETAG_BYTES = 257 }; /* with its NUL */

struct store; /* opaque */

/* Makes the folder if it is not there. `bytes_max`: of all models, unpacked. */
int store_open(struct store **ret, const char *folder, uint64_t bytes_max,
               struct baton_error *reterr);
/* Another bound, which counts when a model is added next. Any thread. */
void store_set_max(struct store *store, uint64_t bytes_max);
void store_close(struct store *store); /* NULL allowed; models that are held stay held */

/* Of store_add(), so far. */
struct store_counters {
    uint64_t unpacked, known; /* `known`: was there already, by its digest */
};

void store_counters(const struct store *store, struct store_counters *ret);

/* A file without a name in the store's folder, to fetch an archive into. The descriptor, or a
 * code. */
int store_file(const struct store *store, struct baton_error *reterr);

/* A model that is held. Whoever wants a pipeline of its own reads it again: archive_pipeline(). */
struct model {
    char digest[DIGEST_BYTES];
    char *path; /* of its folder */
    struct pipeline pipeline;
    int fd;            /* its lock */
    atomic_int shares; /* of model_share() and whoever got it first */
};

/* Unpacks the archive unless that is done already. `archive_fd` is borrowed. The codes of
 * archive_unpack(); BATON_EFULL also if what is held leaves no room. */
int store_add(struct store *store, int archive_fd, const struct archive_rules *rules,
              struct model **ret, struct baton_error *reterr);

/* BATON_ENOENT: it is not there; BATON_ECORRUPT: it is not what was unpacked (sums.h), and the next
 * store_add() unpacks it again. Reads all of it. */
int store_find(struct store *store, const char *digest, struct model **ret,
               struct baton_error *reterr);

/* What is known of an address. The key is a digest: see digest_of(). */
struct origin {
    char digest[DIGEST_BYTES];
    char etag[ETAG_BYTES];     /* "" if there was none */
    char before[DIGEST_BYTES]; /* what it had before, until the digest's has run as well; or "" */
};

int store_origin(const struct store *store, const char *key, struct origin *ret,
                 struct baton_error *reterr); /* BATON_ENOENT: nothing */
int store_origin_set(struct store *store, const char *key, const struct origin *origin,
                     struct baton_error *reterr);

struct model *model_share(struct model *model); /* to be released once more */
void model_release(struct model *model);        /* NULL allowed */

#endif

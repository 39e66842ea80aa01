/* The archives that a backend names: fetched, kept on the disk, handed out as folders. */
#ifndef DETECTOR_PROGRAM_ARCHIVES_H
#define DETECTOR_PROGRAM_ARCHIVES_H

#include "detector/program/models.h"

struct archives; /* opaque; on the loop's thread */

struct archives_config {
    uv_loop_t *loop;
    struct logger *logger;      /* borrowed; NULL: silent */
    const char *folder;         /* NULL: of the service, the user, see archives_folder() */
    uint64_t cache_bytes_max;   /* of all models, unpacked */
    uint64_t archive_bytes_max; /* of one */
    const char *ca_file;        /* NULL: the system's; borrowed */
    const char *const *hosts;   /* see fetch_rules; NULL: any; borrowed */
};

/* Where models are kept if nobody says: $CACHE_DIRECTORY (systemd), $XDG_CACHE_HOME/baton-detector,
 * ~/.cache/baton-detector. False: none of them is set. */
bool archives_folder(char *ret, size_t ret_bytes);

/* Blocks for a moment. BATON_EINVAL: there is no such folder to be had; the codes of store_open().
 */
int archives_new(struct archives **ret, const struct archives_config *config,
                 struct baton_error *reterr);
/* After its tickets. Then run the loop, then free. NULL allowed, both. */
void archives_close(struct archives *archives);
void archives_free(struct archives *archives);

/* See store_set_max(). */
void archives_set_cache(struct archives *archives, uint64_t cache_bytes_max);

/* Adds what /metrics says of archives. */
void archives_measure(const struct archives *archives, struct buffer *body);

struct models_source archives_source(struct archives *archives);

#endif

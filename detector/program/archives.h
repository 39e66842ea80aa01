/* Fetches the archives that a backend names, keeps them on the disk, and gives them out as folders.
 */
#ifndef DETECTOR_PROGRAM_ARCHIVES_H
#define DETECTOR_PROGRAM_ARCHIVES_H

#include "detector/program/models.h"

struct archives; /* opaque; on the loop's thread */

struct archives_config {
    uv_loop_t *loop;
    struct logger *logger;      /* borrowed; NULL: silent */
    const char *folder;         /* NULL: of the service or the user, see archives_folder() */
    uint64_t cache_bytes_max;   /* of all models, unpacked */
    uint64_t archive_bytes_max; /* of one */
    const char *ca_file;        /* NULL: the system's; borrowed */
    const char *const *hosts;   /* see fetch_rules; NULL: any; borrowed */
    bool leads_inside;          /* see fetch_rules */
};

/* Finds the default folder: $CACHE_DIRECTORY (systemd), $XDG_CACHE_HOME/baton-detector or
 * ~/.cache/baton-detector. False: none of these variables is set. */
bool archives_folder(char *ret, size_t ret_bytes);

/* Blocks for a moment. Returns BATON_EINVAL if there is no folder, or the codes of store_open(). */
int archives_new(struct archives **ret, const struct archives_config *config,
                 struct baton_error *reterr);
/* Its tickets must be dropped before. Then run the loop, then free. Both allow NULL. */
void archives_close(struct archives *archives);
void archives_free(struct archives *archives);

/* See store_set_max(). */
void archives_set_cache(struct archives *archives, uint64_t cache_bytes_max);

/* Adds the families of archives to /metrics. */
void archives_measure(const struct archives *archives, struct buffer *body);

struct models_source archives_source(struct archives *archives);

#endif

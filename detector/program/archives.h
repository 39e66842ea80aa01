/* The cache of archives on the disk, and the supply of models from it: those that a backend names,
 * or one file for all. */
#ifndef DETECTOR_PROGRAM_ARCHIVES_H
#define DETECTOR_PROGRAM_ARCHIVES_H

#include "base/buffer.h"
#include "detector/model/supply.h"

struct archives; /* opaque; on the loop's thread */

struct archives_config {
    uv_loop_t *loop;
    struct logger *logger;      /* borrowed; NULL: silent */
    const char *folder;         /* NULL: of the service or the user, see archives_folder() */
    const char *file;           /* the archive for all; NULL: they are fetched */
    uint64_t cache_bytes_max;   /* of all models, unpacked */
    uint64_t archive_bytes_max; /* of one that is fetched */
    int recheck_ms;             /* see supply_config */
    const char *ca_file;        /* NULL: the system's; borrowed */
    const char *const *hosts;   /* see fetch_rules; NULL: any; borrowed */
    bool leads_inside;          /* see fetch_rules */
};

/* Finds the default folder: $CACHE_DIRECTORY (systemd), $XDG_CACHE_HOME/baton-detector or
 * ~/.cache/baton-detector. False: none of these variables is set. */
bool archives_folder(char *ret, size_t ret_bytes);

/* Blocks for a moment; with a file until it is unpacked. Returns BATON_EINVAL if there is no
 * folder, or the codes of store_open(); the error names the file's fault. */
int archives_new(struct archives **ret, const struct archives_config *config,
                 struct baton_error *reterr);
/* After the last order. Then run the loop, then free. Both allow NULL. */
void archives_close(struct archives *archives);
void archives_free(struct archives *archives);

struct supply *archives_supply(struct archives *archives);

/* Sets new limits. See store_set_max(), supply_set_recheck(). */
void archives_set(struct archives *archives, uint64_t cache_bytes_max, int recheck_ms);

/* Adds the families of archives to /metrics. */
void archives_measure(const struct archives *archives, struct buffer *body);

#endif

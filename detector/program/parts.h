/* What a worker and a try run on: one loop, its cameras, the cache of archives, and models. */
#ifndef DETECTOR_PROGRAM_PARTS_H
#define DETECTOR_PROGRAM_PARTS_H

#include "detector/camera/camera.h"
#include "detector/program/models.h"

/* Texts are borrowed. */
struct parts_config {
    struct camera_pool_config pool;
    const char *folder;       /* of the cache; NULL: $CACHE_DIRECTORY (systemd),
                                 $XDG_CACHE_HOME/baton-detector or ~/.cache/baton-detector */
    uint64_t cache_bytes_max; /* of all models, unpacked */
    const char *file;         /* the archive for all subscriptions; NULL: what the backend names */
    struct supply_config supply;
    struct models_config models;
};

struct parts {
    uv_loop_t loop; /* the caller has initialized it */
    struct camera_pool *pool;
    struct store *store;
    struct model *only; /* that of config->file; NULL: none */
    struct supply *supply;
    struct models *models;
};

/* Completes `config` by the loop, the logger (NULL: silent) and each other. Blocks for a moment;
 * with a file until it is unpacked. Returns BATON_EINVAL if there is no folder, the codes of
 * store_open(), or another; the error names the file's fault. After an error, too, the parts are
 * closed and freed. */
int parts_open(struct parts *parts, struct parts_config *config, struct logger *logger,
               struct baton_error *reterr);
/* Then run the loop, then free. */
void parts_close(struct parts *parts);
/* The loop as well. */
void parts_free(struct parts *parts);

/* Adds the families of models to /metrics, and those of archives unless there is a file for all. */
void parts_measure(const struct parts *parts, struct buffer *body);

#endif

/* The program `baton-detector` without main(): its options, its start and its end.
 *
 *   flags, environment, YAML ─▶ settings ─▶ service ◀──frames── watch ─▶ cameras
 *                                            │  ▲ └──────changed──────────▶│
 *                                            │  └──detections── models ◀───┘ frames
 *                                            └────────changed────▶└─▶ archives, inference
 *   SIGTERM, SIGINT: drains, then ends · SIGHUP: reads limits anew
 */
#ifndef DETECTOR_PROGRAM_PROGRAM_H
#define DETECTOR_PROGRAM_PROGRAM_H

#include "detector/camera/watch.h"
#include "detector/program/models.h"
#include "detector/service.h"
#include "options/program.h"

extern const struct program_about program_about; /* groups.c */

/* The options in the form that the parts below need. Texts are borrowed from the options. */
struct program_settings {
    struct service_config service;
    struct camera_options camera;
    struct camera_pool_config pool;
    struct supply_config supply;
    struct models_config models;
    const char *folder;       /* of the cache; NULL: $CACHE_DIRECTORY (systemd),
                                 $XDG_CACHE_HOME/baton-detector or ~/.cache/baton-detector */
    uint64_t cache_bytes_max; /* of all archives */
    const char *file;         /* the archive for all subscriptions; NULL: what the backend names */
    const char *clip;         /* NULL: no try */
    const char *out;          /* of a try: folder for its findings; NULL: standard output */
    enum log_level log_level;
    span drain;
    char token[SERVICE_TOKEN_MAX];
};

/* Returns BATON_EINVAL; for the token's file also BATON_ENOENT or BATON_EIO. */
int program_settings(struct program_settings *ret, const struct options *options,
                     struct baton_error *reterr);

/* ---- What a worker and a try run on: a loop, cameras, the cache of archives, and models ------ */

struct parts {
    uv_loop_t loop; /* the caller has initialized it */
    struct camera_pool *pool;
    struct store *store;
    struct model *only; /* that of settings->file; NULL: none */
    struct supply *supply;
    struct models models;
};

/* Completes the settings by the loop, the logger (NULL: silent) and each other. Blocks for a
 * moment; with a file until it is copied. Returns BATON_EINVAL if there is no folder, the codes
 * of store_open(), or another; the error names the file's fault. After an error, too, the parts are
 * closed and freed. */
int parts_open(struct parts *parts, struct program_settings *settings, struct logger *logger,
               struct baton_error *reterr);
/* Then run the loop, then free. */
void parts_close(struct parts *parts);
/* The loop as well. */
void parts_free(struct parts *parts);

/* ---- Subscriptions --------------------------------------------------------------------------- */

/* One subscription, and all that is known of it: an entry of worker.h. */
struct entry {
    struct images images;
    struct watched cameras;
    struct bound models;
};

/* ---- The program ----------------------------------------------------------------------------- */

/* Runs the pipeline of settings->file on settings->clip, to its end. The caller prints the error,
 * and frees the parts. */
int program_try(struct program_settings *settings, struct parts *parts, struct logger *logger,
                struct baton_error *reterr);

/* Runs until a signal ends it. argc and argv are read again on SIGHUP. */
int program_run(int argc, char **argv, const struct options *options, struct baton_error *reterr);

#endif

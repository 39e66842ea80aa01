/* The program `baton-detector` without main(): its options, its start and its end.
 *
 *   flags, environment, YAML ─▶ settings ─▶ service ◀──frames, online── watch ─▶ cameras
 *                                            │  ▲ └──────changed──────────▶│
 *                                            │  └──detections── models ◀───┘ frames
 *                                            └────────changed────▶└─▶ archives, inference
 *   SIGTERM, SIGINT: drains, then ends · SIGHUP: reads limits anew
 */
#ifndef DETECTOR_PROGRAM_PROGRAM_H
#define DETECTOR_PROGRAM_PROGRAM_H

#include "detector/camera/watch.h"
#include "detector/infer/engine.h"
#include "detector/program/archives.h"
#include "detector/program/models.h"
#include "detector/service.h"
#include "options/program.h"

extern const struct program_about program_about; /* groups.c */

enum { PROGRAM_HOSTS_MAX = 32 };

/* The options in the form that the parts below need. Texts are borrowed from the options. */
struct program_settings {
    struct service_config service;
    struct camera_pool_config pool;
    struct camera_options camera;
    struct engine_options engine;
    struct archives_config archives;
    const char *model_hosts[PROGRAM_HOSTS_MAX + 1]; /* NULL ends; none: any */
    const char *clip;                               /* NULL: no try */
    const char *out;   /* of a try: folder for its findings; NULL: standard output */
    const char *model; /* archive for every subscription; NULL: what the backend names */
    enum log_level log_level;
    bool log_json;
    span drain;
    char token[SERVICE_TOKEN_MAX];
    const char *hosts[PROGRAM_HOSTS_MAX + 1]; /* ends with NULL */
};

/* Returns BATON_EINVAL; for the token's file also BATON_ENOENT or BATON_EIO. */
int program_settings(struct program_settings *ret, const struct options *options,
                     struct baton_error *reterr);
/* Returns the least time between two frames for a rate in frames a second; 0: no limit. */
int program_interval_ms(const struct options *options);

/* Adds the fields of a camera to `ret`, for /status. */
void program_describe_camera(const struct watch *watch, const char *identifier, json_t *ret);

/* Runs the pipeline of settings->model on settings->clip, to its end. The caller prints the error.
 */
int program_try(const struct program_settings *settings, struct baton_error *reterr);

/* Runs until a signal ends it. argc and argv are read again on SIGHUP. */
int program_run(int argc, char **argv, const struct options *options, struct baton_error *reterr);

#endif

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
#include "detector/program/parts.h"
#include "detector/service.h"
#include "options/program.h"

extern const struct program_about program_about; /* groups.c */

/* The options in the form that the parts below need. Texts are borrowed from the options. */
struct program_settings {
    struct service_config service;
    struct parts_config parts;
    struct camera_options camera;
    const char *clip; /* NULL: no try */
    const char *out;  /* of a try: folder for its findings; NULL: standard output */
    enum log_level log_level;
    bool log_json;
    span drain;
    char token[SERVICE_TOKEN_MAX];
};

/* Returns BATON_EINVAL; for the token's file also BATON_ENOENT or BATON_EIO. */
int program_settings(struct program_settings *ret, const struct options *options,
                     struct baton_error *reterr);

/* Runs the pipeline of settings->parts.file on settings->clip, to its end. The caller prints the
 * error.
 */
int program_try(struct program_settings *settings, struct baton_error *reterr);

/* Runs until a signal ends it. argc and argv are read again on SIGHUP. */
int program_run(int argc, char **argv, const struct options *options, struct baton_error *reterr);

#endif

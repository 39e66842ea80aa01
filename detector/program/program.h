/* The program `baton-detector`, but for main(): its options and its life.
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
#include "detector/infer/remote.h"
#include "detector/program/archives.h"
#include "detector/program/rates.h"
#include "detector/service.h"
#include "options/option.h"

extern const struct option_group *const program_groups[]; /* ends with NULL */

/* Whether the program knows the option. */
bool program_option_is_known(const char *name);

/* Takes flags, environment and configuration file. What is wrong is an error; argc and argv as of
 * main(). */
int program_options(struct options **ret, int argc, char **argv, struct baton_error *reterr);

enum { PROGRAM_HOSTS_MAX = 32 };

/* What the options say, as the parts below want it. Texts are borrowed from the options. */
struct program_settings {
    struct service_config service;
    struct camera_pool_config pool;
    struct camera_options camera;
    struct remote_options engine;
    int batch;      /* frames of several cameras that a model is given at once */
    int recheck_ms; /* see models_config */
    struct archives_config archives;
    const char *model_hosts[PROGRAM_HOSTS_MAX + 1]; /* NULL ends; none: any */
    const char *clip;                               /* NULL: no try */
    const char *sheet;                              /* of a try; NULL: none */
    const char *out;   /* of a try: folder of what it finds; NULL: standard output */
    const char *model; /* archive for every subscription; NULL: what the backend names */
    enum log_level log_level;
    bool log_json;
    span drain;
    char token[SERVER_TOKEN_MAX];
    const char *hosts[PROGRAM_HOSTS_MAX + 1]; /* ends with NULL */
};

/* BATON_EINVAL; BATON_ENOENT, BATON_EIO: the token's file. */
int program_settings(struct program_settings *ret, const struct options *options,
                     struct baton_error *reterr);
/* The smallest time between two frames, of a rate in frames a second; 0: no cap. */
int program_interval_ms(const struct options *options);

/* What /status says of a camera, added to `ret`. */
void program_describe_camera(const struct watch *watch, const struct rates *rates,
                             const char *identifier, json_t *ret);

/* Runs the pipeline of settings->model on settings->clip, to its end. The error is to be printed.
 */
int program_try(const struct program_settings *settings, struct baton_error *reterr);

/* On standard output; `format`: a value of --help-format. */
void program_help(const char *format);

/* Runs until a signal ends it. argc and argv are read again on SIGHUP. */
int program_run(int argc, char **argv, const struct options *options, struct baton_error *reterr);

#endif

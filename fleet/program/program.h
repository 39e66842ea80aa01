/* The program `baton-fleet` without main(): its options, its start and its end.
 *
 *   flags, environment, YAML ─▶ settings ─▶ engine (engine.h) ─▶ state, owners, master, …
 *                                             ▲
 *   --config fleet.yaml ──────▶ declared ─────┘
 *
 *   SIGTERM, SIGINT: passes on what this process has, then ends · SIGHUP: reads --config again
 */
#ifndef FLEET_PROGRAM_PROGRAM_H
#define FLEET_PROGRAM_PROGRAM_H

#include "fleet/program/engine.h"
#include "options/program.h"

#include <baton/types.h>

extern const struct program_about program_about; /* groups.c */

enum { PROGRAM_TOKEN_MAX = 256 };

/* The options in the form that the parts below need. Texts are borrowed from the options. */
struct program_settings {
    struct engine_config engine;
    const char *config; /* the file that declares the fleet; NULL: none */
    char node[BATON_NAME_MAX];
    char host[BATON_ADDRESS_MAX];
    char read_token[PROGRAM_TOKEN_MAX], change_token[PROGRAM_TOKEN_MAX];
    char worker_token[PROGRAM_TOKEN_MAX], webhook_secret[PROGRAM_TOKEN_MAX];
};

/* BATON_EINVAL; for a file of a token also BATON_EAUTH. */
int program_settings(struct program_settings *ret, const struct options *options,
                     struct baton_error *reterr);

/* Runs until a signal ends it. */
int program_run(int argc, char **argv, const struct options *options, struct baton_error *reterr);

#endif

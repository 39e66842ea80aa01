/* A program that has flags and no commands: from argv to its exit code.
 *
 *   flags, environment, file ─▶ options ─▶ --help, --version, or run ─▶ exit code
 *
 * Its table has the options help, help-format and version, and one that names a file of options.
 */
#ifndef OPTIONS_PROGRAM_H
#define OPTIONS_PROGRAM_H

#include "base/log.h"
#include "options/option.h"

struct program_about {
    const char *name;                         /* "baton-detector" */
    const char *text;                         /* paragraphs, for --help */
    const char *examples;                     /* lines, for --help */
    const char *file;                         /* the name of the option that names the file */
    const struct option_group *const *groups; /* ends with NULL */
    /* Runs until its end, with the options, which are the caller's, and main()'s argc and argv. */
    int (*run)(int argc, char **argv, const struct options *options, struct baton_error *reterr);
};

/* Reads flags, environment and file. Passwords in argv are overwritten. BATON_EINVAL names the
 * wrong value, or the file that cannot be read; BATON_ENOMEM. */
int program_take(struct options **ret, const struct program_about *about, int argc, char **argv,
                 struct baton_error *reterr);

/* A logger to standard error, as --log-level and --log-json say; NULL when out of memory. */
struct logger *program_logger(const struct options *options);

/* Reads the bearer token in the file that the option names, as base/bearer.h says. *ret: `space`,
 * or NULL if the option is not given. */
int program_token(const char **ret, char *space, size_t bytes, const struct options *options,
                  const char *name, struct baton_error *reterr);

/* The begin of main(): no standard descriptor is free, and no signal is blocked. */
void program_begin(void);

/* The end of main(): returns `result`, or 74 and says so if standard output could not be written.
 */
int program_end(const char *name, int result);

/* All of main(). Returns 0, or the exit code of the error, which is printed to standard error. */
int program_main(const struct program_about *about, int argc, char **argv);

#endif

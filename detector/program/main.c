/* The program `baton-detector`. */
#include "base/version.h"
#include "detector/program/program.h"

#include <stdio.h>

enum { EXIT_USAGE = 64, EXIT_FAILED = 1 };

static int fail(const struct baton_error *error)
{
    (void)fprintf(stderr, "baton-detector: %s\n", error->message);
    if (error->code != BATON_EINVAL) {
        return EXIT_FAILED;
    }
    (void)fputs("baton-detector: 'baton-detector --help' lists the flags and their values\n",
                stderr);
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    struct options *options = NULL;
    struct baton_error error = {0};
    int code = program_options(&options, argc, argv, &error);

    if (!code && options_flag(options, "help")) {
        program_help(options_text(options, "help-format"));
    } else if (!code && options_flag(options, "version")) {
        (void)puts("baton-detector " BATON_VERSION_TEXT);
    } else if (!code) {
        code = program_run(argc, argv, options, &error);
    }
    options_free(options);
    return code ? fail(&error) : 0;
}

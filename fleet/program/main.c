/* The program `baton-fleet`. */
#include "base/version.h"
#include "fleet/program/program.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { EXIT_USAGE = 64, EXIT_FAILED = 1, EXIT_STORAGE = 74 };

static int fail(const struct baton_error *error)
{
    (void)fprintf(stderr, "baton-fleet: %s\n", error->message);
    if (error->code != BATON_EINVAL) {
        return EXIT_FAILED;
    }
    (void)fputs("baton-fleet: 'baton-fleet --help' lists the flags and their values\n", stderr);
    return EXIT_USAGE;
}

static int end(int result)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return result;
    }
    (void)fprintf(stderr, "baton-fleet: standard output: %s\n",
                  errno ? strerror(errno) : "could not be written");
    return result ? result : EXIT_STORAGE;
}

int main(int argc, char **argv)
{
    struct options *options = NULL;
    struct baton_error error = {0};
    int code = program_options(&options, argc, argv, &error);

    if (!code && options_flag(options, "help")) {
        program_help(options_text(options, "help-format"));
    } else if (!code && options_flag(options, "version")) {
        (void)puts("baton-fleet " BATON_VERSION_TEXT);
    } else if (!code) {
        code = program_run(options, &error);
    }
    options_free(options);
    return end(code ? fail(&error) : 0);
}

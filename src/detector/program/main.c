/* The program `baton-detector`. */
#include "base/version.h"
#include "detector/program/program.h"
#include "options/describe.h"

#include <stdio.h>

enum { EXIT_USAGE = 64, EXIT_FAILED = 1 };

static const char text[] =
    "Watches cameras with models, on the order of a backend, and reports what it sees.\n\nA "
    "backend "
    "connects over WebSocket and says which cameras to watch; the same port serves the newest "
    "image of each (/camera/DISPLAY;CAMERA/image), /status, /metrics, /healthz and /readyz. "
    "SIGTERM delivers what waits and ends; SIGHUP reads --log-level and --camera-fps anew.";

static void help(void)
{
    (void)fputs("usage: baton-detector [flags]\n\n", stdout);
    describe_wrapped(stdout, text, 0, 0);
    describe_groups(stdout, program_groups);
    (void)fputs("\nEach flag may also stand in the environment (--log-level as BATON_LOG_LEVEL) "
                "and in a\nconfiguration file (--config FILE, log-level: info).\n\nExamples:\n"
                "  baton-detector --port 8000 --token-file /etc/baton/token\n"
                "  baton-detector --try clip.mp4 --model cars.mpta --out seen\n",
                stdout);
}

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
        help();
    } else if (!code && options_flag(options, "version")) {
        (void)puts("baton-detector " BATON_VERSION_TEXT);
    } else if (!code) {
        code = program_run(argc, argv, options, &error);
    }
    options_free(options);
    return code ? fail(&error) : 0;
}

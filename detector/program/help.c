/* Prints `baton-detector --help`, for people, for the manual page and for shells. */
#include "detector/program/program.h"
#include "options/describe.h"
#include "options/pages.h"

#include <string.h>

static const char text[] =
    "Watches cameras with models, on the order of a backend, and reports what it sees.\n\nA "
    "backend "
    "connects over WebSocket and says which cameras to watch; the same port serves the newest "
    "image of each (/camera/DISPLAY;CAMERA/image), /status, /metrics, /healthz and /readyz. "
    "SIGTERM delivers what waits and ends; SIGHUP reads the log's level and the limits anew.";

static void print_text(void)
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

/* Prints the part of the manual page that is not written by hand. */
static void print_man(void)
{
    pages_man_groups(stdout, program_groups);
}

static void print_bash(void)
{
    (void)fputs("# Completion of baton-detector for bash; written by "
                "'baton-detector --help --help-format bash'.\n"
                "complete -o default -W \"",
                stdout);
    pages_flags(stdout, program_groups);
    (void)fputs("\" baton-detector\n", stdout);
}

static void print_zsh(void)
{
    (void)fputs("#compdef baton-detector\n# Written by 'baton-detector --help --help-format zsh'.\n"
                "compadd --",
                stdout);
    pages_flags(stdout, program_groups);
    (void)fputs("\n_files\n", stdout);
}

static void print_fish(void)
{
    (void)fputs("# Completion of baton-detector for fish; written by "
                "'baton-detector --help --help-format fish'.\n",
                stdout);
    pages_fish(stdout, "baton-detector", "", program_groups);
}

void program_help(const char *format)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } formats[] = {{"text", print_text},
                   {"man", print_man},
                   {"bash", print_bash},
                   {"zsh", print_zsh},
                   {"fish", print_fish}};

    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (strcmp(format, formats[i].name) == 0) {
            formats[i].print();
        }
    }
}

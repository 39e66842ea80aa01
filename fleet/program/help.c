/* Prints `baton-fleet --help`, for people, for the manual page and for shells. */
#include "fleet/program/program.h"
#include "options/describe.h"
#include "options/pages.h"

#include <string.h>

static const char text[] =
    "Is one process of a fleet's control plane: spreads cameras over detector workers.\n\nAny "
    "number of processes with the same --provider and --name share the fleet. One of them, the "
    "master, places the subscriptions; each keeps the connections of its share of the workers. "
    "SIGTERM passes all of that on and ends; SIGHUP reads --config again.";

static void print_text(void)
{
    (void)fputs("usage: baton-fleet [flags]\n\n", stdout);
    describe_wrapped(stdout, text, 0, 0);
    describe_groups(stdout, program_groups);
    (void)fputs("\nEach flag may also stand in the environment (--log-level as BATON_LOG_LEVEL) "
                "and in a\nfile of options (--options FILE, log-level: info).\n\nExamples:\n"
                "  baton-fleet --provider agent: --config fleet.yaml\n"
                "  baton-fleet --provider redis://10.0.0.5 --worker dns+ws://workers:8000\n",
                stdout);
}

/* Prints the part of the manual page that is not written by hand. */
static void print_man(void)
{
    pages_man_groups(stdout, program_groups);
}

static void print_bash(void)
{
    (void)fputs("# Completion of baton-fleet for bash; written by "
                "'baton-fleet --help --help-format bash'.\n"
                "complete -o default -W \"",
                stdout);
    pages_flags(stdout, program_groups);
    (void)fputs("\" baton-fleet\n", stdout);
}

static void print_zsh(void)
{
    (void)fputs("#compdef baton-fleet\n# Written by 'baton-fleet --help --help-format zsh'.\n"
                "compadd --",
                stdout);
    pages_flags(stdout, program_groups);
    (void)fputs("\n_files\n", stdout);
}

static void print_fish(void)
{
    (void)fputs("# Completion of baton-fleet for fish; written by "
                "'baton-fleet --help --help-format fish'.\n",
                stdout);
    pages_fish(stdout, "baton-fleet", "", program_groups);
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

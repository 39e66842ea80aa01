#include "cli/help.h"

#include "options/describe.h"

#include <ctype.h>
#include <string.h>

static void text_exit_codes(FILE *file)
{
    (void)fputs("\nExit codes:\n", file);
#define EXIT_CODE_TEXT(symbol, number, text)                                                       \
    (void)fprintf(file, "  %3d  ", (number));                                                      \
    describe_wrapped(file, (text), 7, 7);
    EXIT_CODES(EXIT_CODE_TEXT)
#undef EXIT_CODE_TEXT
}

static void text_overview(FILE *file)
{
    (void)fputs("usage: baton COMMAND [flags]\n\n"
                "Keeps exactly one leader in a group of processes, and hands leadership on within\n"
                "milliseconds when that leader dies.\n\nCommands:\n",
                file);
    for (const struct command *command = commands; command->name; command++) {
        (void)fprintf(file, "  %-10s %s\n", command->name, command->summary);
    }
    (void)fputs("\n'baton COMMAND --help' tells more. 'baton --version' prints the version.\n"
                "Each flag may also stand in the environment (--log-level as BATON_LOG_LEVEL) and "
                "in a\nconfiguration file (--config FILE, log-level: info).\n",
                file);
    text_exit_codes(file);
}

void help_text(FILE *file, const struct command *command)
{
    if (!command) {
        text_overview(file);
        return;
    }
    (void)fprintf(file, "usage: baton %s [flags]%s%s\n\n", command->name,
                  *command->arguments ? " " : "", command->arguments);
    describe_wrapped(file, command->text, 0, 0);
    describe_groups(file, command->groups);
    (void)fprintf(file, "\nExample:\n  %s\n", command->example);
    text_exit_codes(file);
}

static bool is_shown(const struct option_group *group)
{
    return !group->specs[0].is_hidden;
}

/* ---- Man pages ------------------------------------------------------------------------------- */

/* Text for mdoc: a line that would begin with a control character, and backslashes, are guarded. */
static void man_text(FILE *file, const char *text)
{
    bool is_line_start = true;
    for (; *text; text++) {
        if (strncmp(text, "\n\n", 2) == 0) {
            (void)fputs("\n.Pp\n", file);
            text++;
            is_line_start = true;
            continue;
        }
        if (is_line_start && (*text == '.' || *text == '\'')) {
            (void)fputs("\\&", file);
        }
        (void)fputs(*text == '\\' ? "\\e" : *text == '-' ? "\\-" : (char[]){*text, 0}, file);
        is_line_start = *text == '\n';
        if (*text == '.' && text[1] == ' ') { /* a new sentence begins a new line */
            (void)fputc('\n', file);
            text++;
            is_line_start = true;
        }
    }
    (void)fputc('\n', file);
}

static void man_option(FILE *file, const struct option_spec *spec)
{
    char variable[OPTION_NAME_MAX + 8];
    option_variable(spec, variable);
    (void)fputs(".It ", file);
    if (spec->letter) {
        (void)fprintf(file, "Fl %c , ", spec->letter);
    }
    (void)fprintf(file, "Fl \\-%s", spec->name);
    if (spec->value) {
        (void)fprintf(file, " Ar %s", spec->value);
    }
    (void)fputc('\n', file);
    man_text(file, spec->help);
    if (spec->initial) {
        (void)fprintf(file, "(default:\n.Li %s )\n", spec->initial);
    }
    (void)fprintf(file, ".Pq Ev %s\n", variable);
}

static void man_options(FILE *file, const struct command *command)
{
    for (size_t i = 0; command->groups[i]; i++) {
        const struct option_group *group = command->groups[i];
        if (!is_shown(group)) {
            continue;
        }
        (void)fprintf(file, ".Ss %s\n.Bl -tag -width Ds\n", group->title);
        for (const struct option_spec *spec = group->specs; spec->name; spec++) {
            man_option(file, spec);
        }
        (void)fputs(".El\n", file);
    }
}

static void man_exit_codes(FILE *file)
{
    (void)fputs(".Sh EXIT STATUS\n.Bl -tag -width Ds\n", file);
#define EXIT_CODE_MAN(symbol, number, text)                                                        \
    (void)fprintf(file, ".It %d\n", (number));                                                     \
    man_text(file, (text));
    EXIT_CODES(EXIT_CODE_MAN)
#undef EXIT_CODE_MAN
    (void)fputs(".El\n", file);
}

static void man_commands(FILE *file)
{
    (void)fputs(".Sh COMMANDS\n.Bl -tag -width uncordonXX\n", file);
    for (const struct command *command = commands; command->name; command++) {
        (void)fprintf(file, ".It Cm %s\n", command->name);
        man_text(file, command->summary);
    }
    (void)fputs(".El\n", file);
}

static void man_overview(FILE *file)
{
    (void)fputs(
        ".Dd November 20, 2026\n.Dt BATON 1\n.Os\n.Sh NAME\n.Nm baton\n"
        ".Nd exactly one leader, handed on in milliseconds\n.Sh SYNOPSIS\n.Nm\n.Ar COMMAND\n"
        ".Op flags\n.Sh DESCRIPTION\n.Nm\n"
        "keeps exactly one leader in a group of processes, and hands leadership on within\n"
        "milliseconds when that leader dies.\nEach command has its own page, such as\n"
        ".Xr baton-run 1 .\n",
        file);
    man_commands(file);
    (void)fputs(".Sh ENVIRONMENT\nEach flag may also be given in the environment:\n"
                ".Fl \\-log-level\nas\n.Ev BATON_LOG_LEVEL .\n"
                "A flag beats the environment, which beats the configuration file.\n"
                ".Sh FILES\nThe file named by\n.Fl \\-config\n"
                "is one YAML mapping whose keys are the names of the flags.\n"
                "Keys that no command knows, and keys given twice, are refused.\n",
                file);
    man_exit_codes(file);
}

void help_man(FILE *file, const struct command *command)
{
    char title[32] = "";
    if (!command) {
        man_overview(file);
        return;
    }
    for (size_t i = 0; command->name[i] && i + 1 < sizeof(title); i++) {
        title[i] = (char)toupper((unsigned char)command->name[i]);
        title[i + 1] = '\0';
    }
    (void)fprintf(file,
                  ".Dd November 20, 2026\n.Dt BATON-%s 1\n.Os\n.Sh NAME\n.Nm baton-%s\n.Nd %s\n"
                  ".Sh SYNOPSIS\n.Nm baton %s\n.Op flags\n",
                  title, command->name, command->summary, command->name);
    if (*command->arguments) {
        (void)fprintf(file, ".Ar %s\n", command->arguments);
    }
    (void)fputs(".Sh DESCRIPTION\n", file);
    man_text(file, command->text);
    (void)fputs(".Sh OPTIONS\n", file);
    man_options(file, command);
    man_exit_codes(file);
    (void)fprintf(file, ".Sh EXAMPLES\n.Dl %s\n.Sh SEE ALSO\n.Xr baton 1\n", command->example);
}

/* ---- Completions ----------------------------------------------------------------------------- */

static void print_flags(FILE *file, const struct command *command)
{
    for (size_t i = 0; command->groups[i]; i++) {
        for (const struct option_spec *spec = command->groups[i]->specs; spec->name; spec++) {
            if (!spec->is_hidden) {
                (void)fprintf(file, " --%s", spec->name);
            }
        }
    }
}

static void print_names(FILE *file)
{
    for (const struct command *command = commands; command->name; command++) {
        (void)fprintf(file, " %s", command->name);
    }
}

void help_bash(FILE *file)
{
    (void)fputs("# Completion of baton for bash; written by 'baton help --format bash'.\n"
                "_baton() {\n    local word=${COMP_WORDS[COMP_CWORD]} words\n"
                "    case ${COMP_CWORD}:${COMP_WORDS[1]} in\n        1:*) words=\"",
                file);
    print_names(file);
    (void)fputs(" --help --version\" ;;\n", file);
    for (const struct command *command = commands; command->name; command++) {
        (void)fprintf(file, "        *:%s) words=\"", command->name);
        print_flags(file, command);
        (void)fputs("\" ;;\n", file);
    }
    (void)fputs("    esac\n    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\n"
                "complete -o default -F _baton baton\n",
                file);
}

void help_zsh(FILE *file)
{
    (void)fputs("#compdef baton\n# Written by 'baton help --format zsh'.\n"
                "if (( CURRENT == 2 )); then\n    compadd --",
                file);
    print_names(file);
    (void)fputs(" --help --version\n    return\nfi\ncase $words[2] in\n", file);
    for (const struct command *command = commands; command->name; command++) {
        (void)fprintf(file, "    %s) compadd --", command->name);
        print_flags(file, command);
        (void)fputs(" ;;\n", file);
    }
    (void)fputs("esac\n_files\n", file);
}

void help_fish(FILE *file)
{
    (void)fputs("# Completion of baton for fish; written by 'baton help --format fish'.\n", file);
    for (const struct command *command = commands; command->name; command++) {
        (void)fprintf(file, "complete -c baton -n __fish_use_subcommand -a %s -d \"%s\"\n",
                      command->name, command->summary);
        for (size_t i = 0; command->groups[i]; i++) {
            for (const struct option_spec *spec = command->groups[i]->specs; spec->name; spec++) {
                if (!spec->is_hidden) {
                    (void)fprintf(
                        file,
                        "complete -c baton -n '__fish_seen_subcommand_from %s' -l %s%s -d \"%s\"\n",
                        command->name, spec->name, spec->value ? " -r" : "", spec->help);
                }
            }
        }
    }
}

int help_main(const struct invocation *invocation)
{
    const char *format = options_text(invocation->options, "format");
    const struct command *about = NULL;
    struct baton_error error;
    if (invocation->argc > 0 && !(about = command_find(invocation->argv[0]))) {
        error_set(&error, BATON_EINVAL, "'%s': no such command; 'baton help' lists them",
                  invocation->argv[0]);
        return command_fail(invocation, &error);
    }
    if (strcmp(format, "man") == 0) {
        help_man(stdout, about);
    } else if (strcmp(format, "bash") == 0) {
        help_bash(stdout);
    } else if (strcmp(format, "zsh") == 0) {
        help_zsh(stdout);
    } else if (strcmp(format, "fish") == 0) {
        help_fish(stdout);
    } else {
        help_text(stdout, about);
    }
    return EXIT_OK;
}

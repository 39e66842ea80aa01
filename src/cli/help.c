#include "cli/help.h"

#include "options/describe.h"
#include "options/pages.h"

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
    (void)fputs(
        "\n'baton COMMAND --help' explains a command. 'baton --version' prints the version.\n"
        "Each flag can also be given in the environment (--log-level as BATON_LOG_LEVEL) "
        "or\nin a configuration file (--config FILE, log-level: info).\n",
        file);
    text_exit_codes(file);
}

static void text_example(FILE *file, const char *text)
{
    (void)fprintf(file, "\nExample%s:\n  ", strchr(text, '\n') ? "s" : "");
    for (; *text; text++) {
        (void)fputs(*text == '\n' ? "\n  " : (char[]){*text, 0}, file);
    }
    (void)fputc('\n', file);
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
    text_example(file, command->example);
    text_exit_codes(file);
}

/* ---- Man pages ------------------------------------------------------------------------------- */

static void man_exit_codes(FILE *file)
{
    (void)fputs(".Sh EXIT STATUS\n.Bl -tag -width Ds\n", file);
#define EXIT_CODE_MAN(symbol, number, text)                                                        \
    (void)fprintf(file, ".It %d\n", (number));                                                     \
    pages_man_text(file, (text));
    EXIT_CODES(EXIT_CODE_MAN)
#undef EXIT_CODE_MAN
    (void)fputs(".El\n", file);
}

static void man_commands(FILE *file)
{
    (void)fputs(".Sh COMMANDS\n.Bl -tag -width uncordonXX\n", file);
    for (const struct command *command = commands; command->name; command++) {
        (void)fprintf(file, ".It Cm %s\n", command->name);
        pages_man_text(file, command->summary);
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

/* Each line as it is to be typed: not filled, with the quotes and hyphens of a shell. */
static void man_example(FILE *file, const char *text)
{
    (void)fputs(".Sh EXAMPLES\n.Bd -literal -offset indent\n", file);
    for (; *text; text++) {
        (void)fputs(*text == '\\'   ? "\\e"
                    : *text == '-'  ? "\\-"
                    : *text == '\'' ? "\\(aq"
                                    : (char[]){*text, 0},
                    file);
    }
    (void)fputs("\n.Ed\n", file);
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
    pages_man_text(file, command->text);
    (void)fputs(".Sh OPTIONS\n", file);
    pages_man_groups(file, command->groups);
    man_exit_codes(file);
    man_example(file, command->example);
    (void)fputs(".Sh SEE ALSO\n.Xr baton 1\n", file);
}

/* ---- Completions ----------------------------------------------------------------------------- */

static void print_names(FILE *file)
{
    for (const struct command *command = commands; command->name; command++) {
        (void)fprintf(file, " %s", command->name);
    }
}

/* A line for each command whose first argument is one of some words, as "run|ls|check". */
static void print_verbs(FILE *file, const char *before, const char *between, const char *after)
{
    for (const struct command *command = commands; command->name; command++) {
        size_t length = strcspn(command->arguments, " ");
        if (command->main != help_main && !memchr(command->arguments, '|', length)) {
            continue;
        }
        (void)fprintf(file, "%s%s%s", before, command->name, between);
        if (command->main == help_main) {
            print_names(file);
        }
        for (size_t i = 0; i < length && command->main != help_main; i++) {
            (void)fputc(command->arguments[i] == '|' ? ' ' : command->arguments[i], file);
        }
        (void)fputs(after, file);
    }
}

/* Which lines of `baton members` name one that can be passed leadership, or be removed. */
#define HEIRS "$7 == \"yes\" && $3 == \"voter\" && $4 != \"leader\""
#define ANY   "1"

static const char bash_members[] =
    "# Names of members of the group that --data asks; $1: which lines, for awk.\n"
    "_baton_members() {\n    local i data=()\n"
    "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
    "        [[ ${COMP_WORDS[i]} == @(-d|--data) ]] && data=(--data \"${COMP_WORDS[i + 1]}\")\n"
    "    done\n"
    "    baton members \"${data[@]}\" --timeout 1s 2>/dev/null |"
    " awk \"NR > 1 && ($1) { print \\$1 }\"\n}\n";

static const char zsh_members[] =
    "_baton_members() {\n    local i data=()\n"
    "    for ((i = 3; i < CURRENT; i++)); do\n"
    "        [[ $words[i] == (-d|--data) ]] && data=(--data \"$words[i+1]\")\n"
    "    done\n"
    "    compadd -- $(baton members $data --timeout 1s 2>/dev/null |"
    " awk \"NR > 1 && ($1) { print \\$1 }\")\n}\n";

static const char fish_members[] =
    "function __baton_members\n    set -l words (commandline -opc)\n    set -l data\n"
    "    for i in (seq (math (count $words) - 1))\n"
    "        contains -- $words[$i] -d --data; and set data --data $words[(math $i + 1)]\n"
    "    end\n"
    "    baton members $data --timeout 1s 2>/dev/null |"
    " awk \"NR > 1 && ($argv) { print \\$1 }\"\nend\n"
    "complete -c baton -n '__fish_seen_subcommand_from pass' -l to -x"
    " -a '(__baton_members \\'" HEIRS "\\')'\n"
    "complete -c baton -n '__fish_seen_subcommand_from leave' -f"
    " -a '(__baton_members " ANY ")'\n";

void help_bash(FILE *file)
{
    (void)fputs("# Completion of baton for bash; written by 'baton help --format bash'.\n", file);
    (void)fputs(bash_members, file);
    (void)fputs("_baton() {\n    local word=${COMP_WORDS[COMP_CWORD]} words\n"
                "    case ${COMP_CWORD}:${COMP_WORDS[1]} in\n        1:*) words=\"",
                file);
    print_names(file);
    (void)fputs(" --help --version\" ;;\n", file);
    for (const struct command *command = commands; command->name; command++) {
        (void)fprintf(file, "        *:%s) words=\"", command->name);
        pages_flags(file, command->groups);
        (void)fputs("\" ;;\n", file);
    }
    (void)fputs("    esac\n    case ${COMP_CWORD}:${COMP_WORDS[1]} in\n", file);
    print_verbs(file, "        2:", ") words+=\" ", "\" ;;\n");
    (void)fputs("    esac\n    case ${COMP_WORDS[1]}:${COMP_WORDS[COMP_CWORD - 1]} in\n", file);
    for (const struct command *command = commands; command->name; command++) {
        pages_values(file, command->name, command->groups, "words=\"", "\" ;;\n");
    }
    (void)fputs("        pass:--to) words=$(_baton_members '" HEIRS "') ;;\n"
                "        leave:-*) ;;\n"
                "        leave:*) words+=\" $(_baton_members " ANY ")\" ;;\n",
                file);
    (void)fputs("    esac\n    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\n"
                "complete -o default -F _baton baton\n",
                file);
}

void help_zsh(FILE *file)
{
    (void)fputs("#compdef baton\n# Written by 'baton help --format zsh'.\n", file);
    (void)fputs(zsh_members, file);
    (void)fputs("if (( CURRENT == 2 )); then\n    compadd --", file);
    print_names(file);
    (void)fputs(" --help --version\n    return\nfi\ncase $words[2]:$words[CURRENT-1] in\n", file);
    for (const struct command *command = commands; command->name; command++) {
        pages_values(file, command->name, command->groups, "compadd -- ", "; return ;;\n");
    }
    (void)fputs("        pass:--to) _baton_members '" HEIRS "'; return ;;\n"
                "        leave:-*) ;;\n"
                "        leave:*) _baton_members " ANY " ;;\n"
                "esac\ncase $CURRENT:$words[2] in\n",
                file);
    print_verbs(file, "    3:", ") compadd -- ", " ;;\n");
    (void)fputs("esac\ncase $words[2] in\n", file);
    for (const struct command *command = commands; command->name; command++) {
        (void)fprintf(file, "    %s) compadd --", command->name);
        pages_flags(file, command->groups);
        (void)fputs(" ;;\n", file);
    }
    (void)fputs("esac\n_files\n", file);
}

void help_fish(FILE *file)
{
    char condition[64];

    (void)fputs("# Completion of baton for fish; written by 'baton help --format fish'.\n", file);
    (void)fputs(fish_members, file);
    print_verbs(file,
                "complete -c baton -n 'test (count (commandline -opc)) = 2; and "
                "__fish_seen_subcommand_from ",
                "' -f -a \"", "\"\n");
    for (const struct command *command = commands; command->name; command++) {
        (void)fprintf(file, "complete -c baton -n __fish_use_subcommand -f -a %s -d \"%s\"\n",
                      command->name, command->summary);
        (void)snprintf(condition, sizeof(condition), "-n '__fish_seen_subcommand_from %s' ",
                       command->name);
        pages_fish(file, "baton", condition, command->groups);
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

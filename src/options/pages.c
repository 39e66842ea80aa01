#include "options/pages.h"

#include <string.h>

/* ---- Manual pages ---------------------------------------------------------------------------- */

/* A line that would begin with a control character, and backslashes, are guarded. */
void pages_man_text(FILE *file, const char *text)
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
    pages_man_text(file, spec->help);
    if (spec->initial) {
        (void)fprintf(file, "(default:\n.Li %s )\n", spec->initial);
    }
    if (!spec->is_flag_only) {
        (void)fprintf(file, ".Pq Ev %s\n", variable);
    }
}

void pages_man_groups(FILE *file, const struct option_group *const *groups)
{
    for (size_t i = 0; groups[i]; i++) {
        if (groups[i]->specs[0].is_hidden) {
            continue;
        }
        (void)fprintf(file, ".Ss %s\n.Bl -tag -width Ds\n", groups[i]->title);
        for (const struct option_spec *spec = groups[i]->specs; spec->name; spec++) {
            man_option(file, spec);
        }
        (void)fputs(".El\n", file);
    }
}

/* ---- Completions ----------------------------------------------------------------------------- */

void pages_flags(FILE *file, const struct option_group *const *groups)
{
    for (size_t i = 0; groups[i]; i++) {
        for (const struct option_spec *spec = groups[i]->specs; spec->name; spec++) {
            if (!spec->is_hidden) {
                (void)fprintf(file, " --%s", spec->name);
            }
        }
    }
}

static void print_choices(FILE *file, const struct option_spec *spec)
{
    for (const char *at = spec->choices; *at; at++) {
        (void)fputc(*at == '|' ? ' ' : *at, file);
    }
}

void pages_values(FILE *file, const char *command, const struct option_group *const *groups,
                  const char *before, const char *after)
{
    for (size_t i = 0; groups[i]; i++) {
        for (const struct option_spec *spec = groups[i]->specs; spec->name; spec++) {
            if (spec->type == OPTION_CHOICE && !spec->is_hidden) {
                (void)fprintf(file, "        %s:--%s) %s", command, spec->name, before);
                print_choices(file, spec);
                (void)fputs(after, file);
            }
        }
    }
}

/* In double quotes, where fish would replace a variable by its value. */
static void print_quoted(FILE *file, const char *text)
{
    for (; *text; text++) {
        (void)fprintf(file, strchr("\"$\\", *text) ? "\\%c" : "%c", *text);
    }
}

static void fish_option(FILE *file, const struct option_spec *spec)
{
    (void)fprintf(file, "-l %s", spec->name);
    if (spec->type == OPTION_CHOICE) {
        (void)fputs(" -x -a \"", file);
        print_choices(file, spec);
        (void)fputs("\"", file);
    } else if (spec->value) {
        (void)fputs(" -r", file);
    }
    (void)fputs(" -d \"", file);
    print_quoted(file, spec->help);
    (void)fputs("\"\n", file);
}

void pages_fish(FILE *file, const char *program, const char *condition,
                const struct option_group *const *groups)
{
    for (size_t i = 0; groups[i]; i++) {
        for (const struct option_spec *spec = groups[i]->specs; spec->name; spec++) {
            if (!spec->is_hidden) {
                (void)fprintf(file, "complete -c %s %s", program, condition);
                fish_option(file, spec);
            }
        }
    }
}

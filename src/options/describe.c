#include "options/describe.h"

#include <string.h>

enum { PAGE_WIDTH = 80, TEXT_INDENT = 34 };

/* Prints `text` wrapped at PAGE_WIDTH, with later lines indented. */
void describe_wrapped(FILE *file, const char *text, size_t column, size_t indent)
{
    while (*text) {
        size_t word = strcspn(text, " \n");
        if (column > indent && column + 1 + word > PAGE_WIDTH) {
            (void)fprintf(file, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            (void)fputc(' ', file);
            column++;
        }
        (void)fprintf(file, "%.*s", (int)word, text);
        column += word;
        text += word;
        if (strncmp(text, "\n\n", 2) == 0) {
            (void)fprintf(file, "\n\n%*s", (int)indent, "");
            column = indent;
        }
        text += strspn(text, " \n");
    }
    (void)fputc('\n', file);
}

static void text_option(FILE *file, const struct option_spec *spec)
{
    char head[128];
    char letter[8] = "    ";
    if (spec->letter) {
        (void)snprintf(letter, sizeof(letter), "-%c, ", spec->letter);
    }
    int bytes = snprintf(head, sizeof(head), "  %s--%s%s%s", letter, spec->name,
                         spec->value ? " " : "", spec->value ? spec->value : "");
    (void)fputs(head, file);
    if (bytes + 2 > TEXT_INDENT) {
        (void)fputc('\n', file);
        bytes = 0;
    }
    (void)fprintf(file, "%*s", TEXT_INDENT - bytes, "");
    char help[512];
    (void)snprintf(help, sizeof(help), "%s%s%s%s", spec->help, spec->initial ? " (default: " : "",
                   spec->initial ? spec->initial : "", spec->initial ? ")" : "");
    describe_wrapped(file, help, TEXT_INDENT, TEXT_INDENT);
}

static bool is_shown(const struct option_group *group)
{
    return !group->specs[0].is_hidden;
}

void describe_groups(FILE *file, const struct option_group *const *groups)
{
    for (size_t i = 0; groups[i]; i++) {
        const struct option_group *group = groups[i];
        if (!is_shown(group)) {
            continue;
        }
        (void)fprintf(file, "\n%s:\n", group->title);
        for (const struct option_spec *spec = group->specs; spec->name; spec++) {
            text_option(file, spec);
        }
    }
}

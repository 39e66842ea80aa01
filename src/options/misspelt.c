#include "options/misspelt.h"

#include "base/log.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char prefix[] = "BATON_";

bool misspelt_begin(struct misspelt *ret, const char *entry)
{
    const char *end = strchr(entry, '=');

    if (!end || strncmp(entry, prefix, sizeof(prefix) - 1) != 0 ||
        (size_t)(end - entry) >= OPTION_NAME_MAX + 8) {
        return false;
    }
    *ret = (struct misspelt){.variable = entry, .bytes = (int)(end - entry)};
    /* With more changes it would be another name: BATON_EPOCH and BATON_RUN are meant as they are.
     */
    ret->changes = 2 + ((size_t)ret->bytes - sizeof(prefix)) / 5;
    return true;
}

void misspelt_compare(struct misspelt *misspelt, const struct option_group *const *groups)
{
    char name[OPTION_NAME_MAX + 8];
    char option[OPTION_NAME_MAX + 8];

    (void)snprintf(name, sizeof(name), "%.*s", misspelt->bytes, misspelt->variable);
    for (; *groups; groups++) {
        for (const struct option_spec *spec = (*groups)->specs; spec->name; spec++) {
            size_t changes;
            option_variable(spec, option);
            changes = text_distance(name, option);
            if (changes < misspelt->changes) {
                misspelt->changes = changes;
                misspelt->meant = spec;
            }
        }
    }
}

void misspelt_warn(const struct misspelt *misspelt, const char *program)
{
    char option[OPTION_NAME_MAX + 8];

    if (misspelt->meant && misspelt->changes > 0) {
        option_variable(misspelt->meant, option);
        (void)fprintf(stderr, "%s%s: %.*s: names no option and is ignored; is %s meant?\n",
                      log_prefix(STDERR_FILENO, LOG_WARNING), program, misspelt->bytes,
                      misspelt->variable, option);
    }
}

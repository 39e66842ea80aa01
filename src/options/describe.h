/* Options as text for people, from the same table that they are read by. */
#ifndef OPTIONS_DESCRIBE_H
#define OPTIONS_DESCRIBE_H

#include "options/option.h"

#include <stdio.h>

/* Prints `text` wrapped at the width of a page; the first line begins at `column`, later lines at
 * `indent`. An empty line separates paragraphs. */
void describe_wrapped(FILE *file, const char *text, size_t column, size_t indent);

/* Prints each group that is not hidden: its title, and each flag with its value and help. */
void describe_groups(FILE *file, const struct option_group *const *groups);

#endif

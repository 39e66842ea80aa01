/* Options as text for people, from the same table that they are read by. */
#ifndef OPTIONS_DESCRIBE_H
#define OPTIONS_DESCRIBE_H

#include "options/option.h"

#include <stdio.h>

/* Words of `text`, broken at the width of a page; the line stands at `column` already, further
 * ones begin at `indent`. An empty line parts paragraphs. */
void describe_wrapped(FILE *file, const char *text, size_t column, size_t indent);

/* Each group that is not hidden, with its title: a flag, its value and what it does. */
void describe_groups(FILE *file, const struct option_group *const *groups);

#endif

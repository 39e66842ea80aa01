/* Options as manual pages (mdoc) and as completions of shells, from the same table. */
#ifndef OPTIONS_PAGES_H
#define OPTIONS_PAGES_H

#include "options/option.h"

#include <stdio.h>

/* Text for mdoc: each sentence on its line, and nothing in it is taken for markup. */
void pages_man_text(FILE *file, const char *text);

/* A subsection for each group that is not hidden. */
void pages_man_groups(FILE *file, const struct option_group *const *groups);

/* " --port --host …", without hidden ones. */
void pages_flags(FILE *file, const struct option_group *const *groups);

/* For a shell's case, a line for each choice: "COMMAND:--preset) BEFOREdefault lan wanAFTER". */
void pages_values(FILE *file, const char *command, const struct option_group *const *groups,
                  const char *before, const char *after);

/* A line for each that is not hidden: "complete -c PROGRAM … -l port -r -d '…'"; `condition`: of
 * fish, with its flag; "": none. */
void pages_fish(FILE *file, const char *program, const char *condition,
                const struct option_group *const *groups);

#endif

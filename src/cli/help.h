/* Help in every form, written from the tables: text, man pages (mdoc), shell completions. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include "cli/command.h"

#include <stdio.h>

#define BATON_VERSION_TEXT "0.1.0"

/* command NULL: the whole of `baton`. */
void help_text(FILE *file, const struct command *command);
void help_man(FILE *file, const struct command *command);
void help_bash(FILE *file);
void help_zsh(FILE *file);
void help_fish(FILE *file);

#endif

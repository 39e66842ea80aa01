/* Help in every form, written from the tables: text, man pages (mdoc), shell completions. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include "base/version.h"
#include "cli/command.h"

#include <stdio.h>

/* command NULL: help of `baton` itself. */
void help_text(FILE *file, const struct command *command);
void help_man(FILE *file, const struct command *command);
void help_bash(FILE *file);
void help_zsh(FILE *file);
void help_fish(FILE *file);

#endif

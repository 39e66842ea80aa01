/* BATON_… variables that name no option, but nearly one: such a variable would be ignored. */
#ifndef OPTIONS_MISSPELT_H
#define OPTIONS_MISSPELT_H

#include "options/option.h"

struct misspelt {
    const char *variable; /* in the environment, up to the "=" */
    int bytes;
    size_t changes;                  /* that make it `meant`; 0: it is that one */
    const struct option_spec *meant; /* NULL: it is like none */
};

/* False: the entry of the environment is no BATON_… variable. */
bool misspelt_begin(struct misspelt *ret, const char *entry);
/* Compares it with the options of these groups. */
void misspelt_compare(struct misspelt *misspelt, const struct option_group *const *groups);
/* Prints a warning to standard error, if it is nearly an option that it was compared with. */
void misspelt_warn(const struct misspelt *misspelt, const char *program);

#endif
